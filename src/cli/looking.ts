/** The verbs `report`, `top` and `view`, which show what bridges have counted and recorded, and what they do. */
import type { TokenSource } from '../config/access.ts';
import { BridgeError } from '../errors.ts';
import { readSmallFile } from '../io/bounded-file.ts';
import type { TopOutput } from '../observe/top/run-top.ts';
import type { Keyboard, TopTerminal } from '../observe/top/terminal-screen.ts';
import type { ViewOutput } from '../observe/view/run-view.ts';
import type { BridgeCommand } from './command-line.ts';
import type { CommandLineOptions } from './options/option-table.ts';
import { type LookedAt, parseReport, parseTop, parseView } from './parse/looking.ts';
import type { RemoteSurroundings } from './parse/servers/remote.ts';
import { systemClock } from './system-deps.ts';

export interface Screen {
  readonly width: number;
  readonly color: boolean;
}

/** Returns the output and the exit code of `mcp-portage report`. Rejects with a BridgeError. */
export async function reportUsage(command: BridgeCommand, around: RemoteSurroundings, screen: Screen) {
  const { source, windowMs, format } = parseReport(command, around);
  const [{ runReport }, { fetchUsage }] = await Promise.all([
    import('../observe/usage/report-command.ts'),
    import('../observe/usage/fetch-usage.ts'),
  ]);
  const asked = { windowMs, format, ...screen, wallClock: Date.now };
  if ('stateDirectory' in source) return runReport({ ...asked, source: { kind: 'state', ...source } });
  const usage = await fetchUsage({ url: source.url, token: readToken(source), replicas: source.replicas });
  return runReport({ ...asked, source: { kind: 'usage', usage } });
}

export interface TopRequest {
  readonly color: boolean;
  /** Ends the view. */
  readonly signal: AbortSignal;
}

/** The parts of the process that a view needs. Without a terminal at stdout, the bridge is shown once. */
export interface TopDevices {
  /** Undefined: stdin is not a terminal. */
  readonly stdin: NodeJS.ReadStream | undefined;
  readonly stdout: NodeJS.WriteStream;
  readonly events: Pick<NodeJS.EventEmitter, 'on' | 'off'>;
}

/** Shows a running bridge until the user or the signal ends it. Rejects with a BridgeError. */
export async function showTop(
  command: BridgeCommand,
  around: RemoteSurroundings,
  { color, signal, ...devices }: TopRequest & TopDevices,
): Promise<void> {
  const looked = parseTop(command, around);
  const { runTop } = await import('../observe/top/run-top.ts');
  const ending = await runTop({
    url: looked.url,
    token: readToken(looked),
    replicas: looked.replicas,
    output: topOutput(devices, color),
    clock: systemClock,
    wallClock: Date.now,
    signal,
  });
  if (ending.kind === 'failed') throw new BridgeError(ending.code, ending.message);
}

/** The arguments of `mcp-portage view`. */
export interface ViewCommand {
  readonly options: CommandLineOptions;
  readonly words: readonly string[];
}

export interface ViewDevices {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Shows a recording, or the messages of a running bridge until the signal. Rejects with a BridgeError. */
export async function showView(
  command: ViewCommand,
  around: RemoteSurroundings,
  { color, signal, stdout, stderr }: TopRequest & ViewDevices,
): Promise<void> {
  const { source, filter, format } = parseView(command, around);
  const { runView } = await import('../observe/view/run-view.ts');
  await runView({
    source: source.kind === 'bridge' ? { ...source, token: readToken(source) } : source,
    filter,
    format,
    output: { columns: () => stdout.columns ?? DEFAULT_VIEW_COLUMNS, color, write: (text) => writeTo(stdout, text) },
    tell: (text) => void stderr.write(`mcp-portage: ${text}\n`),
    clock: systemClock,
    wallClock: Date.now,
    signal,
  });
}

/** Waits for a slow reader, so that a recording of any size takes little memory. */
function writeTo(stdout: NodeJS.WriteStream, text: string): ReturnType<ViewOutput['write']> {
  if (stdout.write(text)) return Promise.resolve(stdout.writable ? 'open' : 'closed');
  return new Promise((resolve) => {
    const settle = (): void => {
      for (const event of ['drain', 'close', 'error']) stdout.off(event, settle);
      resolve(stdout.writable ? 'open' : 'closed');
    };
    if (!stdout.writable) return settle();
    for (const event of ['drain', 'close', 'error']) stdout.on(event, settle);
  });
}

function topOutput({ stdin, stdout, events }: TopDevices, hasColors: boolean): TopOutput {
  const write = (text: string): void => void stdout.write(text);
  const columns = (): number => stdout.columns ?? DEFAULT_COLUMNS;
  if (!stdout.isTTY) return { kind: 'text', columns, write };
  const terminal: TopTerminal = {
    columns,
    rows: () => stdout.rows ?? DEFAULT_ROWS,
    hasColors,
    write,
    keyboard: stdin && keyboardAt(stdin),
    onResize: (resized) => listen(stdout, 'resize', resized),
    onExit: (exiting) => listen(events, 'exit', exiting),
  };
  return { kind: 'screen', terminal };
}

function listen(emitter: TopDevices['events'], event: string, listener: () => void): () => void {
  emitter.on(event, listener);
  return () => emitter.off(event, listener);
}

function keyboardAt(stdin: NodeJS.ReadStream): Keyboard {
  return {
    open: (typed, ended) => {
      stdin.setEncoding('utf8');
      stdin.on('data', typed);
      stdin.on('end', ended);
      // A closed terminal is an error to read from, and to leave raw mode of.
      stdin.on('error', ended);
      stdin.setRawMode(true);
    },
    close: () => {
      stdin.setRawMode(false);
      stdin.removeAllListeners('data');
      stdin.pause();
      // An open stdin would keep the process alive.
      stdin.unref();
    },
  };
}

const DEFAULT_COLUMNS = 120;
const DEFAULT_VIEW_COLUMNS = 100;
const DEFAULT_ROWS = 40;

function readToken({ token }: Pick<LookedAt, 'token'>): string | undefined {
  return token && textOf(token);
}

function textOf(token: TokenSource): string {
  if (token.kind === 'value') return token.token;
  try {
    return readSmallFile(token.file).trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new BridgeError('ERR_CONFIG_OPTION', `--status-token: ${token.file} cannot be read (${code}).`, { cause });
  }
}
