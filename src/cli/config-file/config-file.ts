/** What a configuration file of a host says, in the words of our own options. */
import type { Target } from '../../config/server.ts';
import type { BridgeError } from '../../errors.ts';
import type { WrittenOptions } from '../options/given-options.ts';

export interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  /** Under the key `portage` at the top: for the listener, for the process, and defaults for every server. */
  readonly options: WrittenOptions;
  /** In the order of the file, without those that are switched off or wrong. */
  readonly servers: readonly WrittenServer[];
  /** Names of servers that are switched off. */
  readonly disabled: readonly string[];
  /** Servers whose entries are wrong, unless they are required: then the whole file is. */
  readonly leftOut: readonly LeftOutServer[];
  /** Absolute paths of the other files that were read: those with variables. */
  readonly included: readonly string[];
  readonly warnings: readonly string[];
}

export interface LeftOutServer {
  readonly name: string;
  /** All that is wrong with its entry. */
  readonly error: BridgeError;
}

export interface WrittenServer {
  /** As the file writes it. */
  readonly name: string;
  /** The name as one segment of a URL, by which it is served. */
  readonly segment: string;
  /** Where it stands, for messages: `claude.json:12:5 (mcpServers.github)`. */
  readonly source: string;
  readonly target: Target;
  /** What the entry says, in the words of the options: `env`, `cwd`, `header`, `transport`, and all under its key `portage`. */
  readonly options: WrittenOptions;
  /** Whether the process is ready only when this server is. */
  readonly isRequired: boolean;
  /** Names of callers that may use it; undefined: everybody who may come in. */
  readonly callers: readonly string[] | undefined;
}
