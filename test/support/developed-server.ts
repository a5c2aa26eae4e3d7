/** A server in development: its code is a file that the test edits while a bridge watches it. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import type { ExecutionContext } from 'ava';
import { type Bridge, type LogLine, startBridge } from './bridge.ts';
import { createConfigFolder } from './config-folder.ts';
import { waitFor } from './wait-for.ts';

const FIXTURE = new URL('../fixtures/servers/developed.js', import.meta.url).href;

export interface Definition {
  readonly version: string;
  /** Default: `work`. */
  readonly tools?: readonly string[];
  readonly capabilities?: object;
}

export interface DevelopedServer {
  readonly folder: string;
  /** The file with the code. */
  readonly file: string;
  readonly command: readonly [string, string];
  /** Saves the code by one event: a file from elsewhere is renamed to it. */
  save(definition: Definition): Promise<void>;
  /** Saves the code as editors do: to another file beside it that is renamed. */
  saveAsEditor(definition: Definition): Promise<void>;
  /** Saves code that does not run. */
  break(code: string): Promise<void>;
}

/** The folder is removed with the test. */
export async function developServer(
  t: ExecutionContext,
  serve: 'serveLegacy' | 'serveModern',
  definition: Definition = { version: 'one' },
): Promise<DevelopedServer> {
  const { path } = await createConfigFolder(t);
  const folder = join(path, 'server');
  await mkdir(folder);
  const file = join(folder, 'server.mjs');
  const write = async (code: string, temporary = join(path, 'new.mjs')): Promise<void> => {
    await writeFile(temporary, code);
    await rename(temporary, file);
  };
  const codeOf = ({ tools = ['work'], ...rest }: Definition): string =>
    `import { ${serve} } from ${JSON.stringify(FIXTURE)};\n${serve}(${JSON.stringify({ ...rest, tools })});\n`;
  const save = (changed: Definition): Promise<void> => write(codeOf(changed));
  const saveAsEditor = (changed: Definition): Promise<void> => write(codeOf(changed), `${file}.new`);
  await save(definition);
  return { folder, file, command: [process.execPath, file], save, saveAsEditor, break: write };
}

/** Starts a bridge, and resolves when it watches. Stopped when the test ends. */
export async function startWatching(
  t: ExecutionContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Bridge> {
  const bridge = await startBridge(['--log-level', 'debug', ...args], { env });
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

/** Resolves when the files are watched. They are from the first client on. */
export function watches({ logs }: Pick<Bridge, 'logs'>, times = 1): Promise<unknown> {
  return waitFor(() => linesWith(logs, /files of --watch are watched/).length >= times, { message: 'the watch' });
}

/** Resolves with the lines of the log that match, once there are as many. */
export function logged({ logs }: Pick<Bridge, 'logs'>, text: RegExp, times = 1): Promise<readonly LogLine[]> {
  return waitFor(
    () => {
      const found = linesWith(logs, text);
      return found.length >= times && found;
    },
    { message: () => `${times} times ${text} in\n${logs.map(({ msg }) => msg).join('\n')}` },
  );
}

export function linesWith(logs: readonly LogLine[], text: RegExp): readonly LogLine[] {
  return logs.filter(({ msg = '' }) => text.test(msg));
}

/** What a call of a tool has told of the code and the process that answered. */
export function told(result: unknown): { readonly version: string; readonly pid: number } {
  const { content } = result as { content: readonly { readonly text: string }[] };
  return JSON.parse(content[0]?.text ?? '');
}

/** Closed when the test ends. */
export async function connectModern(t: ExecutionContext, { url }: Pick<Bridge, 'url'>): Promise<ModernSdk> {
  const client = new ModernSdk(
    { name: 'modern', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new ModernHttp(url));
  t.teardown(() => client.close());
  return client;
}
