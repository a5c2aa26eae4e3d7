/** A started server process as the rest of the bridge sees it: two byte streams and an end. */
import type { Writable } from 'node:stream';
import type { BridgeError } from '../errors.ts';

/** The process to start. */
export interface ChildSpec {
  /** How it is called in logs and messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  /** The whole environment; nothing is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables it does not get; looked for on its stderr. */
  readonly withheldEnv: readonly string[];
  /** The time it has to end by itself once it is told to; see terminate.ts. */
  readonly graceMs: number;
}

/**
 * Why a child is to end: it is not needed any more (the default), it hangs, or the bridge itself is about to exit and
 * cannot end it later.
 */
export type EndReason = 'unwanted' | 'hung' | 'urgent';

/** A child on pipes or on a pseudo-terminal. Its owner calls `terminate` unless `ended` or `failed` came first. */
export interface Child {
  readonly name: string;
  /** Undefined when it could not be started, which `failed` is about to tell. */
  readonly pid: number | undefined;
  /** Never throws for what the child does: when it goes away, `closed('stdin')` follows. */
  readonly stdin: Writable;
  /** When output last came from it, on stdout or stderr, or else when it was started; by the bridge's clock. */
  readonly lastHeardMs: number;
  /** It was told to end, or has exited and left others of its group behind. */
  readonly isEnding: boolean;
  /** It exited though nobody had told it to, or was told to because it hung. Never of one that could not be started. */
  readonly hasFailed: boolean;
  /** Stop and go on reading its stdout. Up to one buffer that was read before may still come. */
  pauseOutput(): void;
  resumeOutput(): void;
  /**
   * Walks down the termination ladder. May be called again, which speeds it up if the end has become urgent. Resolves
   * like `gone`.
   */
  terminate(why?: EndReason): Promise<void>;
  /** Synchronous last resort: SIGKILL for whatever is left of it. */
  killNow(): void;
  /** Resolves when neither the process nor another member of its group is left. Never rejects. */
  readonly gone: Promise<void>;
}

/**
 * The events of a child. Either `ended` or `failed` comes last, once, and never from within the call that starts the
 * child.
 */
export interface ChildListener {
  /** Bytes of its stdout have come, in order. */
  output(chunk: Buffer): void;
  /** It closed this stream and runs on. Called once at most, and not for streams that end because the process did. */
  closed(stream: 'stdin' | 'stdout'): void;
  /** The process has exited and its output has been delivered. */
  ended(exit: ChildExit): void;
  /** It could not be started after all: ERR_UPSTREAM_SPAWN. */
  failed(error: BridgeError): void;
}

export interface ChildExit {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly ranMs: number;
  /** The last lines of its stderr, printable and short enough for a message; see stderr-log.ts. */
  readonly stderrTail: readonly string[];
  /** The withheld variables that its stderr named not long before the end. */
  readonly namedOnStderr: readonly string[];
  /** The bridge had begun to end it before it exited. */
  readonly terminated: boolean;
}

/** Completes "server X …": `exited with code 1 after 120 ms`. */
export function describeExit({ code, signal, ranMs, terminated }: ChildExit): string {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  const why = terminated ? ' when told to' : '';
  return `${how}${why} after ${describeDuration(ranMs)}`;
}

function describeDuration(durationMs: number): string {
  return durationMs < 10_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 1000)} s`;
}
