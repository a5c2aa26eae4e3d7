import type { Readable, Writable } from 'node:stream';
import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { StrayClient } from '../downstream/stdio/stray-client.ts';
import type { BridgeError } from '../errors.ts';
import type { Observer } from '../relay/observer.ts';

export type { StrayClient } from '../downstream/stdio/stray-client.ts';

export interface BridgeDeps extends Deps {
  /** Observers of a program that runs the bridge as a part of its own. */
  readonly observers: readonly Observer[];
  /** The stdin and stdout of a bridge that serves over HTTP, where a client may hold their other ends. */
  readonly strayClient?: StrayClient | undefined;
}

export interface ListChange {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

export interface RunningBridge {
  /** Serves these from now on; undefined: it serves one client, and what that began with. */
  readonly update: ((servers: Config['servers']) => ListChange) | undefined;
  /** Files that it writes may have been moved away: it opens them again. */
  reopen(): void;
  /** Where it can be reached, for people; empty for a stdio endpoint. */
  readonly urls: readonly { readonly label: string; readonly url: string }[];
  /** What is served, and where clients find it; empty for a stdio endpoint. */
  readonly servers: readonly { readonly name: string; readonly url: string }[];
  /** Where people look at it; undefined: nobody can. */
  readonly statusUrl: string | undefined;
  /** Takes nothing new, lets open calls finish within the grace time, ends streams, then the server's processes. */
  shutdown(signal: NodeJS.Signals): Promise<void>;
  /** Last resort, synchronous: no child stays behind. */
  killNow(): void;
  /** Resolves when the bridge has ended by itself: with what went wrong, or undefined when its work is done. */
  readonly ended: Promise<BridgeError | undefined>;
}

/** The client's end of a stdio endpoint. */
export interface ClientPipes {
  readonly input: Readable;
  readonly output: Writable;
  /** Whoever had started us is gone, and the client most likely with it. Asked when the input has ended. */
  isOrphaned(): boolean;
}
