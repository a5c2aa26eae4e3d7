/** Records what the two commands of the README's quick start show on pseudo-terminals. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownPort } from '../../test/support/own-port.ts';
import { type Line, parseScreen, textOf, wrapLine } from './screen.ts';

export interface Scene {
  /** What the terminal is for, in a few words. */
  readonly name: string;
  /** What a user types. */
  readonly command: string;
  readonly lines: readonly Line[];
}

/** As many as the report of the second command needs. */
export const COLUMNS = 96;

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const SERVER = '@modelcontextprotocol/server-everything';
/** Where the program listens if nobody says otherwise, as in the README. */
const USUAL_PORT = 8000;
const TIMEOUT_MS = 60_000;
/** How long a server may take on a busy machine. */
const PROBE_TIMEOUT = '1m';

export async function record(): Promise<readonly [Scene, Scene]> {
  const folder = await mkdtemp(join(tmpdir(), 'recording-'));
  try {
    return await recordWith(await writeQuickNpx(folder));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Starts the installed server as npx does, but at once. Each client has a server of its own, and a busy machine takes so long
 * to start npx for each that the report can be another one.
 */
async function writeQuickNpx(folder: string): Promise<string> {
  const server = fileURLToPath(import.meta.resolve(`${SERVER}/dist/index.js`));
  await writeFile(join(folder, 'npx'), `#!/bin/sh\nexec '${process.execPath}' '${server}'\n`, { mode: 0o755 });
  return `${folder}${delimiter}${process.env.PATH}`;
}

async function recordWith(path: string): Promise<readonly [Scene, Scene]> {
  const port = await ownPort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const serving = await run(['--port', String(port), '--', 'npx', '-y', SERVER], path, /claude mcp add [^\n]*\n/);
  try {
    const probing = await run(['probe', '--timeout', PROBE_TIMEOUT, url], path, /What was asked/);
    probing.stop();
    await probing.ended;
    const usual = (text: string): string => text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${USUAL_PORT}`);
    const linesOf = (text: string, last: RegExp): readonly Line[] => {
      const lines = parseScreen(usual(text));
      const shown = lines.slice(0, 1 + lines.findIndex((line) => last.test(textOf(line))));
      return shown.flatMap((line) => wrapLine(line, COLUMNS));
    };
    return [
      {
        name: 'serve a server',
        command: `npx -y mcp-portage -- npx -y ${SERVER}`,
        lines: linesOf(serving.text, /claude mcp add/),
      },
      {
        name: 'see who can use it',
        command: `npx -y mcp-portage probe http://127.0.0.1:${USUAL_PORT}/mcp`,
        // The list of requests that follows is left out: its times differ in every run.
        lines: linesOf(probing.text, /stdio clients, modern/),
      },
    ];
  } finally {
    serving.stop();
    await serving.ended;
  }
}

interface Running {
  readonly text: string;
  readonly ended: Promise<unknown>;
  stop(): void;
}

/** Resolves when the program has written what was waited for. */
async function run(args: readonly string[], path: string, awaited: RegExp): Promise<Running> {
  // Loaded late: some systems have no build of it.
  const { spawn } = await import('@lydell/node-pty');
  const { NO_COLOR: _, ...inherited } = process.env;
  const env = { ...inherited, TERM: 'xterm-256color', PATH: path };
  const terminal = spawn(process.execPath, ['bin/mcp-portage.js', ...args], { cols: COLUMNS, cwd: REPOSITORY, env });
  const stop = () => terminal.kill('SIGTERM');
  const ended = new Promise((resolve) => terminal.onExit(resolve));
  let text = '';
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no ${awaited} within ${TIMEOUT_MS} ms in ${text}`)), TIMEOUT_MS);
      terminal.onExit(({ exitCode }) => reject(new Error(`ended with code ${exitCode} before ${awaited}: ${text}`)));
      terminal.onData((data) => {
        text += data;
        if (awaited.test(text)) resolve();
      });
    });
  } catch (thrown) {
    stop();
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
  return { text, ended, stop };
}
