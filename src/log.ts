/**
 * The log: pino on stderr, one line an event. stdout belongs to the protocol and is never written here. A reader of
 * stderr that is slow, or sleeps for ever, costs lines of the log and nothing else.
 */
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from 'pino';
import type { LogConfig } from './config.ts';
import { PatientLines } from './io/patient-lines.ts';
import { createLineRenderer } from './log-lines.ts';
import { printableLine, printableLines, toPrintable } from './printable.ts';

export interface LogOptions extends LogConfig {
  /** Colours for the pretty format. */
  readonly colors: boolean;
  /** Where lines go; stderr unless a test listens. */
  readonly destination?: DestinationStream;
  /** Called before each line is written. */
  readonly beforeLine?: (() => void) | undefined;
}

export async function createLog(options: LogOptions): Promise<Logger> {
  const settings: LoggerOptions = {
    level: options.level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    // pino's own `redact`, with paths at three depths, costs 40 µs a line; this about 1.
    formatters: { level: (label) => ({ level: label }), log: redactCredentials },
    hooks: {
      logMethod(args, method) {
        const [first, second] = args as readonly unknown[];
        // Messages quote peers. What is written to the log is one line, whatever they said.
        if (typeof first === 'string') method.call(this, printableLine(first));
        else if (typeof second === 'string') method.call(this, first, printableLine(second));
        else method.apply(this, args);
      },
    },
    serializers: {
      err: (error: Error) => redactCredentials(stdSerializers.err(error)),
      method: showChosen,
      id: showChosen,
      reason: showChosen,
    },
  };
  const opened = options.destination ?? openStderr((dropped) => tellDropped(log, dropped));
  const destination = announceLines(opened, options.beforeLine);
  const log = pino(settings, options.format === 'json' ? destination : prettify(destination, options));
  return log;
}

/** Longer words of a peer are cut. */
const MAX_CHOSEN_LENGTH = 300;

/**
 * What the peer has chosen that a line is about, as the method of its message: it may be as long as a message, and hold
 * what drives the terminal it is shown on.
 */
function showChosen(value: unknown): unknown {
  return typeof value === 'string' ? toPrintable(value.slice(0, 2 * MAX_CHOSEN_LENGTH), MAX_CHOSEN_LENGTH) : value;
}

function announceLines(destination: DestinationStream, beforeLine: (() => void) | undefined): DestinationStream {
  if (beforeLine === undefined) return destination;
  return {
    write: (line) => {
      beforeLine();
      destination.write(line);
    },
  };
}

function openStderr(onDropped: (count: number) => void): DestinationStream {
  // Node makes a stderr that is a pipe or a socket non-blocking when it is first asked for.
  const { fd } = process.stderr;
  const lines = new PatientLines({ fd, onDropped });
  process.once('exit', () => lines.flushSync());
  return lines;
}

/** It is logged as an error: whoever wants to see nothing less than errors may have missed one. */
function tellDropped(log: Logger, dropped: number): void {
  log.error({ dropped }, `${dropped} lines of the log were lost because nobody read stderr`);
}

/** Who looks for details has asked for a level that has them. */
function prettify(destination: DestinationStream, { colors, level }: LogOptions): DestinationStream {
  const fields = level === 'debug' || level === 'trace' ? 'shown' : 'left-out';
  const render = createLineRenderer({ colors, fields });
  return { write: (line) => destination.write(render(line)) };
}

/**
 * Fields whose name says that they hold a credential, compared without case, `-` and `_`. `env` and `headers` are not
 * secret as such, but what is in them cannot be told apart by name.
 */
const CREDENTIAL_NAMES: ReadonlySet<string> = new Set(
  [
    ['authorization', 'proxyauthorization', 'cookie', 'setcookie', 'apikey', 'xapikey', 'env', 'headers'],
    ['token', 'accesstoken', 'refreshtoken', 'idtoken', 'bearertoken', 'authtoken'],
    ['password', 'passphrase', 'secret', 'clientsecret', 'credentials', 'privatekey'],
  ].flat(),
);

/** Log fields nest little; deeper things are someone else's objects, and cycles end here. */
const MAX_DEPTH = 4;
const CENSOR = '[redacted]';

/**
 * Replaces credentials in the fields, and makes texts printable. Copies only what has to change: most lines have
 * nothing to hide.
 */
export function redactCredentials(fields: object): Record<string, unknown> {
  return redactObject(fields as Record<string, unknown>, 1);
}

function redactObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const key in object) {
    const value = object[key];
    const redacted = isCredentialName(key) ? CENSOR : key === 'stack' ? showStack(value) : redactValue(value, depth);
    if (redacted === value) continue;
    copy ??= { ...object };
    copy[key] = redacted;
  }
  return copy ?? object;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return printableLine(value);
  // Errors have their own form in the log, made by a serializer.
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth >= MAX_DEPTH) return value;
  return redactObject(value as Record<string, unknown>, depth + 1);
}

/** Makes the stack of an error printable, whose lines stay apart. */
function showStack(value: unknown): unknown {
  return typeof value === 'string' ? printableLines(value) : value;
}

function isCredentialName(key: string): boolean {
  return CREDENTIAL_NAMES.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}
