import type { Readable, Writable } from 'node:stream';
import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { StrayClient } from '../downstream/stdio/stray-client.ts';
import type { BridgeError } from '../errors.ts';
import type { Observer } from '../relay/observer.ts';

export type { StrayClient } from '../downstream/stdio/stray-client.ts';

export interface BridgeDeps extends Deps {
  /** Observers of a program that embeds the bridge. */
  readonly observers: readonly Observer[];
  /** Stdin and stdout of a bridge that serves over HTTP, at whose other end a client may be waiting by mistake. */
  readonly strayClient?: StrayClient | undefined;
}

export interface ListChange {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

export interface RunningBridge {
  /** Replaces the served servers; undefined: the bridge has one client, and its server stays the same. */
  readonly update: ((servers: Config['servers']) => ListChange) | undefined;
  /** Reopens the files that the bridge writes, as they may have been moved away. */
  reopen(): void;
  /** URLs at which the bridge can be reached, for people; empty for a stdio endpoint. */
  readonly urls: readonly { readonly label: string; readonly url: string }[];
  /** Servers and their URLs; empty for a stdio endpoint. */
  readonly servers: readonly { readonly name: string; readonly url: string }[];
  /** URL of the status page; undefined: it is not served. */
  readonly statusUrl: string | undefined;
  /** Takes no new calls, lets open ones finish within the grace time, ends streams, and then the server's processes. */
  shutdown(signal: NodeJS.Signals): Promise<void>;
  /** Kills all child processes synchronously, as a last resort. */
  killNow(): void;
  /** Resolves when the bridge has ended by itself: with the error, or undefined if its work is done. */
  readonly ended: Promise<BridgeError | undefined>;
}

/** The client's end of a stdio endpoint. */
export interface ClientPipes {
  readonly input: Readable;
  readonly output: Writable;
  /**
   * Returns true if the process that started the bridge is gone, and the client most likely with it. Called once the
   * input has ended.
   */
  isOrphaned(): boolean;
}
