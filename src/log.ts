/**
 * The log: pino on stderr, one line an event. stdout belongs to the protocol and is never written here.
 * Writes are synchronous, so that what was logged before a crash or an exit is there to be read.
 */
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import type { LogConfig } from './config.ts';

const STDERR_FD = 2;

/** Fields that hold credentials wherever they appear; matched at the top of a log line and one and two levels down. */
const CREDENTIAL_FIELDS = [
  ['authorization', 'Authorization', '["proxy-authorization"]', 'cookie', '["set-cookie"]', '["x-api-key"]'],
  ['apiKey', 'api_key', 'token', 'accessToken', 'access_token', 'refreshToken', 'refresh_token', 'idToken', 'id_token'],
  ['password', 'passphrase', 'secret', 'clientSecret', 'client_secret', 'credentials', 'privateKey', 'env'],
].flat();

export interface LogOptions extends LogConfig {
  /** Colours for the pretty format. */
  readonly colors: boolean;
  /** Where lines go; stderr unless a test listens. */
  readonly destination?: DestinationStream;
}

/** The pretty printer is loaded only when it is used. */
export async function createLog(options: LogOptions): Promise<Logger> {
  const settings: LoggerOptions = {
    level: options.level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: CREDENTIAL_FIELDS.flatMap(atThreeDepths), censor: '[redacted]' },
  };
  // pino's own destination also bears a stderr nobody reads any more: on EPIPE it goes quiet.
  const destination = options.destination ?? pino.destination({ fd: STDERR_FD, sync: true });
  return pino(settings, options.format === 'json' ? destination : await prettify(destination, options.colors));
}

async function prettify(destination: DestinationStream, colorize: boolean): Promise<DestinationStream> {
  const { default: pinoPretty } = await import('pino-pretty');
  const render = pinoPretty.prettyFactory({
    colorize,
    ignore: 'pid,endpoint',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  });
  return { write: (line) => destination.write(render(line)) };
}

function atThreeDepths(field: string): readonly string[] {
  const below = field.startsWith('[') ? field : `.${field}`;
  return [field, `*${below}`, `*.*${below}`];
}
