/** Which options make sense where: a port without a listener, or a header for a child process, would do nothing. */
import type { Target } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { BridgeVerb, OptionSpec } from './option-spec.ts';
import { OPTIONS } from './option-table.ts';
import type { CommandLineOptions } from './options.ts';

export interface OptionUse {
  readonly verb: BridgeVerb;
  readonly target: Target['kind'];
}

export function isApplicable({ verbs, target }: OptionSpec, use: OptionUse): boolean {
  return (verbs === undefined || verbs.includes(use.verb)) && (target === undefined || target === use.target);
}

/** Throws ERR_CONFIG_COMBINATION for the first option of the command line that has no meaning there. */
export function refuseInapplicable(commandLine: CommandLineOptions, use: OptionUse): void {
  const inapplicable = OPTIONS.find((option) => commandLine.has(option.name) && !isApplicable(option, use));
  if (inapplicable !== undefined) throw new BridgeError('ERR_CONFIG_COMBINATION', explain(inapplicable, use));
}

const WHY_NOT: Readonly<Record<BridgeVerb, string>> = {
  serve: '`serve` runs until it is stopped',
  connect: '`connect` does not listen: it speaks on its own stdin and stdout, with one client',
  probe: '`probe` only looks at the server, once',
};

/** `--timeout` of a probe has longer names elsewhere. */
function askForRelated(name: string, use: OptionUse): string {
  const related = OPTIONS.filter((option) => isApplicable(option, use) && option.name.split('-').includes(name));
  return related.length === 0 ? '.' : `, or did you mean ${related.map((option) => `--${option.name}`).join(' or ')}?`;
}

function explain({ name, verbs, target }: OptionSpec, use: OptionUse): string {
  if (verbs !== undefined && !verbs.includes(use.verb)) {
    const places = verbs.map((verb) => `\`${verb}\``).join(' and ');
    return `--${name} is for ${places}; ${WHY_NOT[use.verb]}. Leave it out${askForRelated(name, use)}`;
  }
  if (target === 'url') {
    return `--${name} is for a server that is reached by its URL; this one is started as a command. Leave it out, or hand the command what it needs by its own arguments or with --env.`;
  }
  return `--${name} is for a server that is started as a command; this one runs already and is reached by its URL. Leave it out.`;
}
