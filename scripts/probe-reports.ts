/** Real reports of `mcp-portage probe` for the README, by the built program. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
const SERVER = '@modelcontextprotocol/server-everything';
/** Where the server listens if nobody says otherwise, as in the README. */
const USUAL_PORT = 3001;
const START_TIMEOUT_MS = 20_000;

/** By the name of their place in the README. */
export const PROBES: Readonly<Record<string, () => Promise<string>>> = {
  'probe of a command': () => probe('--', 'npx', '-y', SERVER),
  'probe of a URL': probeUrl,
};

/** As a block of Markdown. */
export function asBlock(report: string): string {
  return `\`\`\`\n${report.trimEnd()}\n\`\`\``;
}

/** Two reports are the same when they differ in times only. */
export function withoutTimes(report: string): string {
  return report.replaceAll(/ *\d+(\.\d+)? m?s\b/g, ' … ms');
}

async function probeUrl(): Promise<string> {
  const port = await findFreePort();
  const program = fileURLToPath(import.meta.resolve(`${SERVER}/dist/index.js`));
  const env = { ...process.env, PORT: String(port) };
  const server = spawn(process.execPath, [program, 'streamableHttp'], { env, stdio: 'ignore' });
  const ended = once(server, 'exit');
  try {
    await whenListening(port);
    const report = await probe(`http://localhost:${port}/mcp`);
    return report.replaceAll(`localhost:${port}`, `localhost:${USUAL_PORT}`);
  } finally {
    server.kill('SIGKILL');
    await ended;
  }
}

async function probe(...argv: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['bin/mcp-portage.js', 'probe', ...argv], {
    cwd: REPOSITORY,
  });
  return stdout;
}

/** The server takes a number only; that it is still free a moment later is likely enough for documentation. */
async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}

async function whenListening(port: number): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(`http://localhost:${port}/mcp`).catch(() => undefined);
    await response?.body?.cancel();
    if (response !== undefined) return;
    if (Date.now() > deadline) throw new Error(`${SERVER} does not listen on port ${port}`);
    await delay(50);
  }
}
