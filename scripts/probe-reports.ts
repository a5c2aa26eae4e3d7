/** Real reports of `mcp-portage probe` for its guide, by the built program. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ownPort } from '../test/support/own-port.ts';

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));
const SERVER = '@modelcontextprotocol/server-everything';
/** Where the server listens if nobody says otherwise, as in the guide. */
const USUAL_PORT = 3001;
const START_TIMEOUT_MS = 60_000;
/** What a busy machine does not reach is no part of a report. */
const PROBE_TIMEOUT = '1m';

/** By the name of their place in the guide. */
export const PROBES: Readonly<Record<string, () => Promise<string>>> = {
  'probe of a command': () => probe('--', 'npx', '-y', SERVER),
  'probe of a URL': probeUrl,
};

/** As a block of Markdown. */
export function asBlock(report: string): string {
  return `\`\`\`\n${report.trimEnd()}\n\`\`\``;
}

/**
 * Two reports are the same when they differ in times only. Whether a server that is still being started answers its first
 * question before it is asked the next one is a matter of time as well.
 */
export function withoutTimes(report: string): string {
  return report
    .replace(/(server\/discover +)(?:error -32601 "Method not found"|no answer within \d+ ms)/, '$1no method')
    .replaceAll(/ *\d+(\.\d+)? m?s\b/g, ' … ms');
}

async function probeUrl(): Promise<string> {
  const port = await ownPort();
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
  const args = ['bin/mcp-portage.js', 'probe', '--timeout', PROBE_TIMEOUT, ...argv];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: REPOSITORY });
  return stdout;
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
