/** A server process as the rest of the bridge sees it: two byte streams and an end. */
import type { Writable } from 'node:stream';
import type { BridgeError } from '../errors.ts';

/** The process to start. */
export interface ChildSpec {
  /** The server's name in logs and messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  /** The whole environment; nothing is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables that the child does not get. If its stderr names one, error messages mention it. */
  readonly withheldEnv: readonly string[];
  /** The time for the child to end by itself before it is killed; see terminate.ts. */
  readonly graceMs: number;
  /** Is told each line of stderr, printable and without what looks like a credential; undefined: nobody reads them. */
  readonly onStderrLine?: ((line: string) => void) | undefined;
}

/**
 * The reason to end a child: it is not needed anymore (the default), another one takes its place, it hangs, or the bridge
 * itself is about to exit and cannot end it later.
 */
export type EndReason = 'unwanted' | 'replaced' | 'hung' | 'urgent';

/** A child on pipes or on a pseudo-terminal. Its owner calls `terminate` unless `ended` or `failed` came first. */
export interface Child {
  readonly name: string;
  /** Undefined if the process could not be started; `failed` then follows. */
  readonly pid: number | undefined;
  /** Writing never fails because of the child. When it exits or stops reading, `closed('stdin')` follows. */
  readonly stdin: Writable;
  /** The time of the latest output on stdout or stderr, or of the start, by the bridge's clock. */
  readonly lastHeardMs: number;
  /** True if the child was told to end, or has exited while other members of its process group still run. */
  readonly isEnding: boolean;
  /**
   * True if the child exited without being told to, or was ended because it hung. Always false for a child that could
   * not be started.
   */
  readonly hasFailed: boolean;
  /** Pauses and resumes reading stdout. After a pause, one buffer that was already read may still arrive. */
  pauseOutput(): void;
  resumeOutput(): void;
  /**
   * Ends the child in the steps of the termination ladder. A second call can only speed it up, if the end has become
   * urgent. Resolves like `gone`.
   */
  terminate(why?: EndReason): Promise<void>;
  /** Synchronous last resort: sends SIGKILL to the whole process group. */
  killNow(): void;
  /** Resolves when neither the process nor another member of its group runs. Never rejects. */
  readonly gone: Promise<void>;
}

/**
 * The events of a child. The last one is either `ended` or `failed`, called once and never from within the call that
 * starts the child.
 */
export interface ChildListener {
  /** Receives the bytes of the child's stdout, in order. */
  output(chunk: Buffer): void;
  /**
   * The child has closed this stream but still runs. Called at most once, and not for streams that close because the
   * process ended.
   */
  closed(stream: 'stdin' | 'stdout'): void;
  /** The process has exited and its output has been delivered. */
  ended(exit: ChildExit): void;
  /** The child could not be started: ERR_UPSTREAM_SPAWN. */
  failed(error: BridgeError): void;
}

export interface ChildExit {
  /** Null if a signal ended the child. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly ranMs: number;
  /** The last lines of the child's stderr, printable and short enough for a message; see stderr-log.ts. */
  readonly stderrTail: readonly string[];
  /** The withheld variables that stderr named shortly before the end. */
  readonly namedOnStderr: readonly string[];
  /** True if the bridge had begun to end the child before it exited. */
  readonly terminated: boolean;
}

/** Describes the end as the rest of "server X …": `exited with code 1 after 120 ms`. */
export function describeExit({ code, signal, ranMs, terminated }: ChildExit): string {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  const why = terminated ? ' when told to' : '';
  return `${how}${why} after ${describeDuration(ranMs)}`;
}

function describeDuration(durationMs: number): string {
  return durationMs < 10_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 1000)} s`;
}
