/** Formats log lines for people at a terminal. */
import picocolors from 'picocolors';
import { toPrintable } from './printable.ts';
import { shortCommandName } from './process/command-name.ts';

export interface LineOptions {
  readonly colors: boolean;
  /** Fields that the message does not mention are appended to it, or left out. */
  readonly fields: 'shown' | 'left-out';
}

type Fields = Readonly<Record<string, unknown>>;

/** Longer server names are cut, because they precede each line of their server. */
const MAX_NAME_LENGTH = 40;
/** Fields that the line already shows, or that mean nothing to a reader. */
const NO_FIELDS: ReadonlySet<string> = new Set(['level', 'time', 'pid', 'msg', 'err', 'endpoint', 'banner', 'stream']);

/**
 * Renders three kinds of lines. Messages of the bridge: time, level unless it is `info`, and text, with the server's
 * name and the error code added if the text has neither. Lines from a server's stderr: `everything │ …`. The banner at
 * startup and the addresses: as they are.
 */
export function createLineRenderer({ colors, fields: shown }: LineOptions): (json: string) => string {
  const paint = picocolors.createColors(colors);
  const levels: Readonly<Record<string, (text: string) => string>> = {
    trace: paint.dim,
    debug: paint.dim,
    warn: paint.yellow,
    error: paint.red,
    fatal: paint.red,
  };
  return (json) => {
    const line = JSON.parse(json) as Fields;
    const message = textOf(line.msg);
    if (line.banner === 'title') return `${paint.bold(message)}\n`;
    if (line.banner !== undefined) return `${message}\n`;
    if (line.endpoint !== undefined) return `  ${message}\n`;
    const time = paint.dim(clockTime(textOf(line.time), shown));
    const who = toPrintable(textOf(line.server) || shortCommandName(textOf(line.child)), MAX_NAME_LENGTH);
    if (line.stream === 'stderr') return `${time} ${paint.cyan(`${who} │`)} ${message}\n`;
    const level = textOf(line.level);
    const mark = level === 'info' ? '' : `${(levels[level] ?? String)(level)} `;
    const text = sentence(line, message, who);
    const rest = shown === 'shown' ? paint.dim(fieldsOf(line, text)) : '';
    return `${time} ${mark}${text}${rest}\n${stackOf(line)}`;
  };
}

/** A warning or an error contains its reason, also where that is a field. */
function sentence({ level, code, reason }: Fields, message: string, who: string): string {
  const named = who === '' || message.includes(who) ? message : `${who}: ${message}`;
  if (level !== 'warn' && level !== 'error' && level !== 'fatal') return named;
  const explained = typeof reason === 'string' && !message.includes(reason) ? `${named}: ${reason}` : named;
  if (typeof code !== 'string') return explained;
  // A fatal error is the last line, so its reader can type the command below it.
  if (level === 'fatal') return `${explained} (mcp-portage help ${code} says more)`;
  return message.includes(code) ? explained : `${explained} (${code})`;
}

/** The reason is left out if the text before the fields contains it. */
function fieldsOf(line: Fields, before: string): string {
  const fields = Object.entries(line).filter(
    ([name, value]) => !NO_FIELDS.has(name) && !(name === 'reason' && before.includes(String(value))),
  );
  return fields.length === 0 ? '' : ` ${JSON.stringify(Object.fromEntries(fields))}`;
}

/** The stack of an internal error, below its line. */
function stackOf({ err }: Fields): string {
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? textOf(err.stack) : '';
  return stack === '' ? '' : `${stack.replaceAll(/^/gm, '    ')}\n`;
}

/** The time of day in this machine's time zone. */
function clockTime(iso: string, shown: LineOptions['fields']): string {
  const time = new Date(iso);
  const digits = (value: number, length: number): string => String(value).padStart(length, '0');
  const seconds = [time.getHours(), time.getMinutes(), time.getSeconds()].map((value) => digits(value, 2)).join(':');
  return shown === 'shown' ? `${seconds}.${digits(time.getMilliseconds(), 3)}` : seconds;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
