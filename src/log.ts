/**
 * The log: pino on stderr, one line per event. stdout belongs to the protocol and is never written here. If the reader
 * of stderr is slow or stopped, log lines are lost and the bridge goes on.
 */
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers } from 'pino';
import type { LogConfig } from './config.ts';
import { PatientLines } from './io/patient-lines.ts';
import { createLineRenderer } from './log-lines.ts';
import { printableLine, printableLines, toPrintable } from './printable.ts';
import { VERSION } from './version.ts';

export interface LogOptions extends LogConfig {
  /** Enables colors in the pretty format. */
  readonly colors: boolean;
  /** The destination of the lines; default: stderr. Tests pass another. */
  readonly destination?: DestinationStream;
  /** Called before each line is written. */
  readonly beforeLine?: (() => void) | undefined;
}

export async function createLog(options: LogOptions): Promise<Logger> {
  const settings: LoggerOptions = {
    level: options.level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    // pino's own `redact`, with paths at three depths, takes 40 µs per line; this takes about 1.
    formatters: { level: (label) => ({ level: label }), log: redactCredentials },
    hooks: {
      logMethod(args, method) {
        const [first, second] = args as readonly unknown[];
        // Messages may quote peers, so line breaks and control characters are removed.
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
  const log = pino(settings, options.format === 'json' ? withVersion(destination) : prettify(destination, options));
  return log;
}

/** Adds the version of the program to the first line, which a log that is sent in with a question then has. */
function withVersion(destination: DestinationStream): DestinationStream {
  let isFirst = true;
  return {
    write: (line) => {
      if (!isFirst) return destination.write(line);
      isFirst = false;
      destination.write(`${line.slice(0, -'}\n'.length)},"version":${JSON.stringify(VERSION)}}\n`);
    },
  };
}

/** Longer text from a peer is cut. */
const MAX_CHOSEN_LENGTH = 300;

/**
 * Makes a field printable whose value a peer has chosen, such as a method. The value may be as long as a message and
 * contain terminal control sequences.
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
  // The first access to `process.stderr` makes a pipe or a socket non-blocking.
  const { fd } = process.stderr;
  const lines = new PatientLines({ fd, onDropped });
  process.once('exit', () => lines.flushSync());
  return lines;
}

/** Logged as an error, because the lost lines may have included errors. */
function tellDropped(log: Logger, dropped: number): void {
  log.error({ dropped }, `${dropped} lines of the log were lost because nobody read stderr`);
}

/** Fields are only shown at the levels for details. */
function prettify(destination: DestinationStream, { colors, level }: LogOptions): DestinationStream {
  const fields = level === 'debug' || level === 'trace' ? 'shown' : 'left-out';
  const render = createLineRenderer({ colors, fields });
  return { write: (line) => destination.write(render(line)) };
}

/**
 * Names of fields that hold credentials, compared without case, `-` and `_`. `env` and `headers` are included because
 * their members cannot be classified by name.
 */
const CREDENTIAL_NAMES: ReadonlySet<string> = new Set(
  [
    ['authorization', 'proxyauthorization', 'cookie', 'setcookie', 'apikey', 'xapikey', 'env', 'headers'],
    ['token', 'accesstoken', 'refreshtoken', 'idtoken', 'bearertoken', 'authtoken'],
    ['password', 'passphrase', 'secret', 'clientsecret', 'credentials', 'privatekey'],
  ].flat(),
);

/** Limit for nested fields, which are rare. Deeper objects are not the bridge's own, and the limit also ends cycles. */
const MAX_DEPTH = 4;
const CENSOR = '[redacted]';

/**
 * Redacts credentials in the fields and makes text printable. Copies only objects that must change, because most lines
 * have no credentials.
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
  // A serializer formats errors.
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth >= MAX_DEPTH) return value;
  return redactObject(value as Record<string, unknown>, depth + 1);
}

/** Makes the stack of an error printable, but keeps its line breaks. */
function showStack(value: unknown): unknown {
  return typeof value === 'string' ? printableLines(value) : value;
}

function isCredentialName(key: string): boolean {
  return CREDENTIAL_NAMES.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}
