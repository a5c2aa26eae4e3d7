/** A host's configuration file, translated into our own options. */
import type { Membership, Target } from '../../config/server.ts';
import type { BridgeError } from '../../errors.ts';
import type { OptionLayer, Place } from '../options/given-options.ts';

export interface ConfigFile {
  /** The absolute path of the file. */
  readonly path: string;
  /** Options under the top-level key `portage`: for the listener, for the process, and defaults for all servers. */
  readonly options: OptionLayer;
  /** Servers in the order of the file, without those that are disabled or have wrong entries. */
  readonly servers: readonly WrittenServer[];
  /** Names of servers that are disabled in the file. */
  readonly disabled: readonly string[];
  /**
   * Servers with wrong entries that are not required. A wrong entry of a required server makes the whole file wrong.
   */
  readonly leftOut: readonly LeftOutServer[];
  /** Absolute paths of the other files that were read, such as files with variables. */
  readonly included: readonly string[];
  readonly warnings: readonly string[];
}

export interface LeftOutServer {
  readonly name: string;
  /** All mistakes in the entry. */
  readonly error: BridgeError;
}

export interface WrittenServer {
  /** The server's name as written in the file. */
  readonly name: string;
  /** The name as a URL segment, under which the server is served. */
  readonly segment: string;
  /** The place of the entry, for messages: `claude.json:12:5 (mcpServers.github)`. */
  readonly place: Place;
  readonly target: Target;
  /** The entry's settings as options: `env`, `cwd`, `header`, `transport`, and all under its key `portage`. */
  readonly options: OptionLayer;
  /** True if the process counts as ready only when this server is. */
  readonly isRequired: boolean;
  /** Names of the callers that may use the server; undefined if all callers may. */
  readonly callers: readonly string[] | undefined;
  /** Undefined for a server that is left out of the aggregate. */
  readonly membership: WrittenMembership | undefined;
  /** Settings of single tools, by the names that the server gives them. */
  readonly tools: ReadonlyMap<string, WrittenTool>;
}

export interface WrittenMembership extends Membership {
  /** The place of the prefix: where it is written, or else the entry whose name it is made from. */
  readonly place: Place;
}

/** A tool under `portage.tools`. What is undefined stays as the server has it. */
export interface WrittenTool {
  readonly place: Place;
  /** The name that clients see. */
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly isHidden: boolean;
  /** Names of the callers that may use the tool; undefined if all callers may. */
  readonly callers: readonly string[] | undefined;
}
