/**
 * The options that were set, with their places. The command line overrides the environment, which overrides the entry
 * of a server in a file, which overrides the file's options for all servers. Defaults come last.
 */
import { resolve } from 'node:path';
import { BridgeError } from '../../errors.ts';
import { isApplicable, type OptionUse } from './applicable.ts';
import { flagOf } from './option-names.ts';
import {
  type CommandLineOptions,
  defaultOf,
  OPTIONS,
  type Option,
  type OptionName,
  type OptionValue,
  optionOf,
} from './option-table.ts';
import type { ReadingContext } from './value-type.ts';

/**
 * The place where an option was set, as messages call it: `--port`, `MCP_PORTAGE_PORT`, `mcp.json:2:27 (mcpServers.a.portage.port)`
 * in a file, or `server.portage.port` in the options of a program.
 */
export interface Place {
  readonly kind: 'flag' | 'variable' | 'file' | 'field';
  readonly text: string;
}

/** A value that was read, or the explanation why it cannot be, which is an error only if the value is needed. */
export type ReadValue =
  | { readonly ok: true; readonly value: unknown; readonly doubt?: string }
  | { readonly ok: false; readonly problem: string };

/** An option that was set. A list has any number of values; of other options the last one counts. */
export interface GivenOption {
  readonly place: Place;
  readonly values: readonly ReadValue[];
  /**
   * With `host`, the option comes from a host's own login settings, and has no effect if this program does not log in.
   */
  readonly meantFor?: 'us' | 'host';
}

export type OptionLayer = ReadonlyMap<OptionName, GivenOption>;

/** Reads options by name. An unusable value is an ERR_CONFIG_OPTION that names its place. */
export class GivenOptions {
  readonly #given: OptionLayer;
  readonly #use: OptionUse;

  /**
   * @param layers places of options; the first one that sets an option is used
   * @param use options that do not apply to it are ignored
   */
  constructor(layers: readonly OptionLayer[], use: OptionUse) {
    const given = new Map<OptionName, GivenOption>();
    for (const layer of layers) {
      for (const [name, option] of layer) {
        // A variable may be set for other uses: a container sets MCP_PORTAGE_PORT for every command that it may run.
        if (!given.has(name) && isApplicable(optionOf(name), use)) given.set(name, option);
      }
    }
    this.#given = given;
    this.#use = use;
  }

  /** Returns the value, or the default. */
  get<N extends OptionName>(name: N): OptionValue<N>;
  get(name: OptionName): unknown {
    const given = this.#given.get(name);
    if (optionOf(name).kind === 'list') return (given?.values ?? []).map((read) => this.#take(name, read));
    const read = given?.values.at(-1);
    return read === undefined ? defaultOf(name) : this.#take(name, read);
  }

  #take(name: OptionName, read: ReadValue): unknown {
    if (read.ok) return read.value;
    throw new BridgeError('ERR_CONFIG_OPTION', this.#explain(name, read.problem));
  }

  #explain(name: OptionName, problem: string): string {
    return `${this.placeOf(name)}: ${problem}.`;
  }

  /** Returns the explanation of every value that cannot be used, the first of which `get` throws when it is asked for. */
  explainAll(): readonly string[] {
    return [...this.#given].flatMap(([name, { values }]) =>
      values.flatMap((read) => (read.ok ? [] : [this.#explain(name, read.problem)])),
    );
  }

  isGiven(name: OptionName): boolean {
    return this.#given.has(name);
  }

  /** Returns true if the option was set for this program, and not for a host. */
  isMeantForUs(name: OptionName): boolean {
    return this.#given.has(name) && this.#given.get(name)?.meantFor !== 'host';
  }

  isFromEnvironment(name: OptionName): boolean {
    return this.#given.get(name)?.place.kind === 'variable';
  }

  /** Returns true for an option of a file or of a program. A value there may be a misplaced secret. */
  isInFile(name: OptionName): boolean {
    const kind = this.#given.get(name)?.place.kind;
    return kind === 'file' || kind === 'field';
  }

  /** Returns the place for messages. An option that is not set is called by its name. */
  placeOf(name: OptionName): string {
    return this.#given.get(name)?.place.text ?? this.nameOf(name);
  }

  /** Returns the place with the value, for messages. A value in a file is left out. */
  placeWith(name: OptionName, shown: string): string {
    return this.isInFile(name) ? this.placeOf(name) : `${this.placeOf(name)} ${shown}`;
  }

  get spelling(): OptionUse['spelling'] {
    return this.#use.spelling;
  }

  /** Returns what the user of the command line or of the library calls an option. */
  nameOf(name: OptionName): string {
    return this.#use.spelling === 'fields' ? name : flagOf(name);
  }
}

/** Reads one value. A failure shows the value only if it stands where it may be shown and holds no credential. */
export function readValue(option: Option, text: string, place: Place['kind'], context: ReadingContext): ReadValue {
  const parsed = option.type.read(text, context);
  if (parsed.ok || 'problem' in parsed) return parsed;
  const mayBeShown = (place === 'flag' || place === 'variable') && option.type.isSecret !== true && !text.includes('@');
  const got = text === '' ? 'nothing' : mayBeShown ? JSON.stringify(text) : 'something else';
  const meant = parsed.meant === undefined ? '' : `; write ${parsed.meant}`;
  return { ok: false, problem: `expected ${parsed.expected}; got ${got}${meant}` };
}

/** The process around the command line. */
interface ProcessSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
}

/** Returns the layers that override all others: the command line and the environment. */
export function readProcess(
  options: CommandLineOptions,
  { env, cwd, platform }: ProcessSurroundings,
): readonly [commandLine: OptionLayer, environment: OptionLayer] {
  const context: ReadingContext = {
    resolvePath: (path) => resolve(cwd, path),
    platform,
    variables: env,
    nameOf: flagOf,
  };
  return [readCommandLine(options, context), readEnvironment(context, env)];
}

function readCommandLine(options: CommandLineOptions, context: ReadingContext): OptionLayer {
  return new Map(
    [...options].map(([name, texts]) => {
      const option = optionOf(name);
      const values = texts.map((text) => readValue(option, text, 'flag', context));
      return [name, { place: { kind: 'flag', text: option.flag }, values }];
    }),
  );
}

function readEnvironment(context: ReadingContext, env: ProcessSurroundings['env']): OptionLayer {
  const layer = new Map<OptionName, GivenOption>();
  for (const option of OPTIONS) {
    const text = env[option.variable];
    // An empty variable counts as not set: compose files and shells have no other way to say so.
    if (text === undefined || text === '' || isServiceLink(option, text)) continue;
    const texts = option.kind === 'list' ? text.split(option.type.separator ?? ',').map((part) => part.trim()) : [text];
    const values = texts.filter((part) => part !== '').map((part) => readValue(option, part, 'variable', context));
    layer.set(option.name, { place: { kind: 'variable', text: option.variable }, values });
  }
  return layer;
}

/**
 * Returns true for a variable that Kubernetes sets. It describes each service of a namespace to all containers in it: a
 * service called `mcp-portage` appears as `MCP_PORTAGE_PORT=tcp://10.0.0.11:8000`, which is not one of our settings.
 */
function isServiceLink({ name }: Option, text: string): boolean {
  return name === 'port' && /^(tcp|udp|sctp):\/\//.test(text);
}

/** Returns a warning for each value that was probably meant otherwise. */
export function warnOfDoubts(layers: readonly OptionLayer[]): readonly string[] {
  return layers.flatMap((layer) =>
    [...layer.values()].flatMap(({ place, values }) => {
      const last = values.at(-1);
      return last?.ok === true && last.doubt !== undefined ? [`${place.text} ${last.doubt}.`] : [];
    }),
  );
}
