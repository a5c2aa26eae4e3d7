/** Features of terminals: colors, and a status line that is overwritten while the user waits. */
import type { LogConfig } from '../config.ts';
import type { Clock } from '../deps.ts';
import type { Environment } from './parse/servers/child-environment.ts';

/** A terminal whose current line can be overwritten. */
export interface LiveOutput {
  write(text: string): unknown;
  readonly columns?: number;
}

export interface LiveSurroundings {
  readonly stderrIsTerminal: boolean;
  readonly env: Environment;
  readonly log: LogConfig;
}

/** Returns true if stderr is a capable terminal, and the user has asked for neither silence nor plain output. */
export function allowsLiveLine({ stderrIsTerminal, env, log }: LiveSurroundings): boolean {
  if (!stderrIsTerminal || log.level === 'silent' || log.format === 'json') return false;
  return !env.NO_COLOR && !env.CI && env.TERM !== 'dumb';
}

const TICK_MS = 1000;
const ERASE = '\r\u001b[2K';
const DEFAULT_COLUMNS = 80;

/**
 * A line at the bottom of a terminal that shows the current wait and its duration. It is redrawn every second and
 * erased at the end. Waits of less than a second are not shown.
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
   * Shows this wait from now on.
   * @param limitMs the time limit of this wait. Undefined: there is no limit, and the time since creation is shown
   */
  show(what: string, limitMs?: number): void {
    const sinceMs = limitMs === undefined ? this.#startedMs : this.#clock.now();
    this.#shown = { what, sinceMs, limitMs };
    if (this.#isDrawn) this.#draw();
  }

  /** Erases the line, to be called before other output to the terminal. It is redrawn within a second. */
  erase(): void {
    if (this.#isDrawn) this.#output.write(ERASE);
    this.#isDrawn = false;
  }

  /** Erases the line and stops. Further calls have no effect. */
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
    // The last column remains free, because some terminals wrap a full line.
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
 * Returns true if the output may have colors. NO_COLOR forbids them [no-color.org], and FORCE_COLOR decides otherwise.
 * If neither is set, a terminal has colors unless it is dumb.
 */
export function allowsColor(isTerminal: boolean, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  const forced = env.FORCE_COLOR;
  if (forced) return forced !== '0' && forced !== 'false';
  return isTerminal && env.TERM !== 'dumb';
}
