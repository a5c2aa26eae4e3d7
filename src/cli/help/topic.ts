/** Topics of the help: the overview, all options, a command, or a group of options. */
import { BridgeError } from '../../errors.ts';
import { BRIDGE_VERBS, type BridgeVerb, OPTION_GROUPS, type OptionGroup } from '../options/option-table.ts';
import { suggest } from '../suggest.ts';

export type HelpTopic =
  /** The most common commands and options, on one screen. */
  | { readonly kind: 'overview' }
  | { readonly kind: 'all' }
  | { readonly kind: 'verb'; readonly verb: BridgeVerb }
  | { readonly kind: 'group'; readonly group: OptionGroup };

/** Words without a page of their own, for which the overview is shown. */
const IN_OVERVIEW: readonly string[] = ['completion', 'help', 'version'];

/** A group with the name of a command has no topic, since the help of that command includes it. */
const GROUPS = Object.keys(OPTION_GROUPS).filter(isGroup);
export const GROUP_TOPICS = GROUPS.filter((group) => verbOf(group) === undefined);

/** @throws BridgeError ERR_CONFIG_OPTION that lists the topics */
export function parseHelpTopic(word: string | undefined): HelpTopic {
  if (word === undefined || IN_OVERVIEW.includes(word)) return { kind: 'overview' };
  if (word === 'all') return { kind: 'all' };
  const verb = verbOf(word);
  if (verb !== undefined) return { kind: 'verb', verb };
  if (isGroup(word)) return { kind: 'group', group: word };
  const [meant] = suggest(word, [...BRIDGE_VERBS, ...GROUP_TOPICS, 'all']);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `There is no help on ${JSON.stringify(word)}.${hint} Topics are the commands ${BRIDGE_VERBS.join(', ')}, the options for ${GROUP_TOPICS.join(', ')}, and all.`,
  );
}

/** Returns the topic of `mcp-portage <verb> --help`. Without a verb that has a page, that is the overview. */
export function topicOfVerb(word: string | undefined): HelpTopic {
  const verb = verbOf(word);
  return verb === undefined ? { kind: 'overview' } : { kind: 'verb', verb };
}

function verbOf(word: string | undefined): BridgeVerb | undefined {
  return BRIDGE_VERBS.find((candidate) => candidate === word);
}

function isGroup(word: string): word is OptionGroup {
  return Object.hasOwn(OPTION_GROUPS, word);
}
