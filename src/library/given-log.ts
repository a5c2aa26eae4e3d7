import type { Logger } from 'pino';
import type { BridgeLog } from './public-types.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
type Level = (typeof LEVELS)[number];

/** Creates the bridge's log: the program's logger, or none. The bridge then writes nothing anywhere else. */
export function createGivenLog(given: BridgeLog | undefined): Logger {
  const log = given === undefined ? SILENT : new GivenLog(given, {});
  // The bridge uses only the levels, `child` and `isLevelEnabled` of a pino logger, and this class has all of them.
  return log as unknown as Logger;
}

type Used = Pick<Logger, Level | 'isLevelEnabled'> & { child(bindings: object): Used };

function nothing(): void {}

const SILENT: Used = {
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
  isLevelEnabled: () => false,
  child: () => SILENT,
};

/** A logger with additional fields in every line. */
class GivenLog {
  readonly #log: BridgeLog;
  readonly #bindings: object;

  constructor(log: BridgeLog, bindings: object) {
    this.#log = log;
    this.#bindings = bindings;
  }

  child(bindings: object): GivenLog {
    return new GivenLog(this.#log, { ...this.#bindings, ...bindings });
  }

  isLevelEnabled(level: string): boolean {
    return this.#log.isLevelEnabled?.(level) ?? true;
  }

  trace(...line: Line): void {
    this.#write('trace', line);
  }

  debug(...line: Line): void {
    this.#write('debug', line);
  }

  info(...line: Line): void {
    this.#write('info', line);
  }

  warn(...line: Line): void {
    this.#write('warn', line);
  }

  error(...line: Line): void {
    this.#write('error', line);
  }

  fatal(...line: Line): void {
    this.#write('fatal', line);
  }

  #write(level: Level, [first, message]: Line): void {
    if (typeof first === 'string') this.#log[level](this.#bindings, first);
    else this.#log[level]({ ...this.#bindings, ...first }, message);
  }
}

/** A message, or fields and a message. */
type Line = readonly [first: string | object, message?: string];
