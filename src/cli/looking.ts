/** The verbs `report` and `top`, which show what bridges have recorded. */
import type { TokenSource } from '../config/access.ts';
import { BridgeError } from '../errors.ts';
import { readSmallFile } from '../io/bounded-file.ts';
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

export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/**
 * Shows a running bridge until the signal aborts. If the output is not a terminal, shows it once. Rejects with a
 * BridgeError.
 */
export async function showTop(
  command: BridgeCommand,
  around: RemoteSurroundings,
  { output, color, signal }: { readonly output: Terminal; readonly color: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const looked = parseTop(command, around);
  const { runTop } = await import('../observe/top/run-top.ts');
  const write = (text: string): void => void output.write(text);
  const columns = (): number => output.columns ?? DEFAULT_COLUMNS;
  const ending = await runTop({
    url: looked.url,
    token: readToken(looked),
    replicas: looked.replicas,
    output: output.isTTY
      ? { kind: 'screen', columns, rows: () => output.rows ?? DEFAULT_ROWS, hasColors: color, write }
      : { kind: 'text', columns, hasColors: false, write },
    clock: systemClock,
    wallClock: Date.now,
    signal,
  });
  if (ending.kind === 'failed') throw new BridgeError('ERR_UPSTREAM_CONNECT', ending.message);
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
