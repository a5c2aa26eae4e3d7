/**
 * The suite as a client: the server of the same era directly over HTTP, and servers of either era behind the bridge over
 * stdio and over HTTP.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startBridge } from '../support/bridge.ts';
import type { RoleScores } from './compare.ts';
import { type RoleRun, type Score, type SuiteRevision, scoreServer } from './suite.ts';

const LEGACY_HTTP = '--http';
const MODERN_HTTP = '--modern-http';

const DIRECT: Readonly<Record<SuiteRevision, string>> = { '2025-11-25': LEGACY_HTTP, '2026-07-28': MODERN_HTTP };

/**
 * The tool that lets go of its client cannot do so through the bridge, which can do it itself. Once, as the suite comes
 * back only once. Looked at each second, that is 2.2 to 3.2 s after its start and three seconds later again: the tool is
 * done about a second from each of them.
 */
const POLL_AFTER = ['--poll-after', '2200ms'];

export async function scoreServerRole({ suite, programs, revision, results, turns }: RoleRun): Promise<RoleScores> {
  const { server } = programs;
  const legacyStdio = ['--', process.execPath, server, '--stdio'];
  const modernStdio = ['--', process.execPath, server, '--modern-stdio'];
  const scoreUrl = (url: URL, name: string): Promise<Score> =>
    scoreServer({ suite, revision, url, outputDir: join(results, `${revision}-server-${name}`) });
  const scoreThrough = async (name: string, args: readonly string[]): Promise<Score> => {
    const bridge = await startBridge([...POLL_AFTER, ...args]);
    try {
      return await scoreUrl(bridge.url, name);
    } finally {
      await bridge.stop();
    }
  };
  const [direct, session, shared, url, modern, modernUrl] = await Promise.all([
    turns.run(() => withHttpServer(server, DIRECT[revision], (url) => scoreUrl(url, 'direct'))),
    // The suite waits 600 ms for a first word, which a process that has yet to start may miss on a busy machine; one
    // scenario is three clients with capabilities of their own, within a tenth of a second.
    turns.run(() => scoreThrough('session', ['--isolation', 'session', '--prewarm', '4', ...legacyStdio])),
    turns.run(() => scoreThrough('shared', ['--isolation', 'shared', ...legacyStdio])),
    turns.run(() => withHttpServer(server, LEGACY_HTTP, (url) => scoreThrough('url', [url.href]))),
    turns.run(() => scoreThrough('modern', modernStdio)),
    turns.run(() => withHttpServer(server, MODERN_HTTP, (url) => scoreThrough('modern-url', [url.href]))),
  ]);
  return {
    title: `${revision}, server role`,
    baseline: 'direct',
    direct,
    bridged: { session, shared, url, modern, 'modern url': modernUrl },
  };
}

export async function withHttpServer(
  program: string,
  mode: string,
  score: (url: URL) => Promise<Score>,
): Promise<Score> {
  const server = spawn(process.execPath, [program, mode, '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const end = () => void server.kill('SIGKILL');
  // What fails elsewhere must not leave it behind.
  process.once('exit', end);
  try {
    for await (const line of createInterface({ input: server.stderr })) {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return await score(new URL(url));
    }
    throw new Error('the fixture server ended before it listened');
  } finally {
    end();
    process.off('exit', end);
  }
}
