/** The verbs `report` and `top`, which show what bridges have recorded. */
import type { TokenSource } from '../config/access.ts';
import { BridgeError } from '../errors.ts';
import { readSmallFile } from '../io/bounded-file.ts';
import type { TopOutput } from '../observe/top/run-top.ts';
import type { Keyboard, TopTerminal } from '../observe/top/terminal-screen.ts';
import type { BridgeCommand } from './command-line.ts';
import { type LookedAt, parseReport, parseTop } from './parse/looking.ts';
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
const DEFAULT_ROWS = 40;

function readToken({ token }: LookedAt): string | undefined {
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
