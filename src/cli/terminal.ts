/** What a terminal is good for: colours, and a line that is written over while somebody waits. */
import type { LogConfig } from '../config.ts';
import type { Clock } from '../deps.ts';
import type { Environment } from './parse/servers/child-environment.ts';

/** A terminal that a line can be written over. */
export interface LiveOutput {
  write(text: string): unknown;
  readonly columns?: number;
}

export interface LiveSurroundings {
  readonly stderrIsTerminal: boolean;
  readonly env: Environment;
  readonly log: LogConfig;
}

/** Only for somebody who watches a terminal that can do it, and has not asked for quiet or for plain output. */
export function allowsLiveLine({ stderrIsTerminal, env, log }: LiveSurroundings): boolean {
  if (!stderrIsTerminal || log.level === 'silent' || log.format === 'json') return false;
  return !env.NO_COLOR && !env.CI && env.TERM !== 'dumb';
}

const TICK_MS = 1000;
const ERASE = '\r\u001b[2K';
const DEFAULT_COLUMNS = 80;

/**
 * One line at the bottom of a terminal that says what is waited for and for how long, written over each second and gone
 * at the end. Nothing is shown of what takes less than a second.
 */
export class LiveLine {
  readonly #output: LiveOutput;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #stop: () => void;
  #shown: { readonly what: string; readonly sinceMs: number; readonly limitMs: number | undefined } | undefined;
  #isDrawn = false;

  constructor(output: LiveOutput, clock: Clock) {
    this.#output = output;
    this.#clock = clock;
    this.#startedMs = clock.now();
    this.#stop = clock.every(TICK_MS, () => this.#draw());
  }

  /**
   * Shows from now on that this is waited for.
   * @param limitMs how long it is waited for from now on; undefined: the time since the beginning of all is shown alone
   */
  show(what: string, limitMs?: number): void {
    const sinceMs = limitMs === undefined ? this.#startedMs : this.#clock.now();
    this.#shown = { what, sinceMs, limitMs };
    if (this.#isDrawn) this.#draw();
  }

  /** Before anything else is written to the terminal; it comes back with the next second. */
  erase(): void {
    if (this.#isDrawn) this.#output.write(ERASE);
    this.#isDrawn = false;
  }

  /** May be called twice. */
  close(): void {
    this.#stop();
    this.erase();
    this.#shown = undefined;
  }

  #draw(): void {
    if (this.#shown === undefined) return;
    const { what, sinceMs, limitMs } = this.#shown;
    const seconds = Math.floor((this.#clock.now() - sinceMs) / 1000);
    const limit = limitMs === undefined ? '' : ` of ${describeLimit(limitMs)}`;
    const time = ` (${seconds} s${limit})`;
    // One column is left free: a full line makes some terminals go on to the next.
    const width = (this.#output.columns ?? DEFAULT_COLUMNS) - 1 - time.length;
    const text = `waiting for ${what}`;
    const shown = text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
    this.#output.write(`${ERASE}${shown}${time}`);
    this.#isDrawn = true;
  }
}

function describeLimit(ms: number): string {
  return ms < 60_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min`;
}

/**
 * Whether output may have colours: on a terminal that has them, unless NO_COLOR says no [no-color.org], and elsewhere
 * where FORCE_COLOR says yes.
 */
export function allowsColor(isTerminal: boolean, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  const forced = env.FORCE_COLOR;
  if (forced) return forced !== '0' && forced !== 'false';
  return isTerminal && env.TERM !== 'dumb';
}
