/** The suite as a client: the same server directly over HTTP, and behind the bridge over stdio and over HTTP. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startBridge } from '../support/bridge.ts';
import type { RoleScores } from './compare.ts';
import { type Score, scoreServer } from './suite.ts';

const SERVER = fileURLToPath(new URL('../fixtures/everything/server.js', import.meta.url));
const STDIO = ['--', process.execPath, SERVER, '--stdio'];

/**
 * The tool that lets go of its client cannot do so through the bridge, which can do it itself. Once, as the suite comes
 * back only once: later than this and less than twice this before the tool is done.
 */
const POLL_AFTER = ['--poll-after', '1500ms'];

export async function scoreServerRole(results: string): Promise<RoleScores> {
  return {
    role: 'server',
    direct: await withHttpServer((url) => scoreServer(url, join(results, 'direct'))),
    bridged: {
      session: await scoreThroughBridge(['--isolation', 'session', ...STDIO], join(results, 'session')),
      shared: await scoreThroughBridge(['--isolation', 'shared', ...STDIO], join(results, 'shared')),
      remote: await withHttpServer((url) => scoreThroughBridge([url.href], join(results, 'remote'))),
    },
  };
}

async function withHttpServer(score: (url: URL) => Promise<Score>): Promise<Score> {
  const server = spawn(process.execPath, [SERVER, '--http', '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    for await (const line of createInterface({ input: server.stderr })) {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return await score(new URL(url));
    }
    throw new Error('the fixture server ended before it listened');
  } finally {
    server.kill('SIGKILL');
  }
}

async function scoreThroughBridge(args: readonly string[], results: string): Promise<Score> {
  const bridge = await startBridge([...POLL_AFTER, ...args]);
  try {
    return await scoreServer(bridge.url, results);
  } finally {
    await bridge.stop();
  }
}
