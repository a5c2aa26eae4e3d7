/** The report on the servers of a file, by the built program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { serveSdk } from '../fixtures/http-servers/sdk.ts';
import { ENVIRONMENT, fixture, NODE } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { EXECUTABLE } from './stdio-program.ts';

async function probe(t: ExecutionContext, mcpServers: object, ...argv: string[]) {
  const folder = await createConfigFolder(t);
  const file = await folder.write('claude.json', { mcpServers });
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MCP_PORTAGE_')));
  const args = [EXECUTABLE, 'probe', '--config', file, ...argv];
  const child = spawn(NODE, args, { env: { ...env, COLUMNS: '100' }, stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { stdout, stderr, code };
}

const works = { command: NODE, args: [ENVIRONMENT] };
const BAD = {
  absent: { command: 'no-such-program-anywhere' },
  ends: { command: NODE, args: [fixture('exits-before-initialize')] },
  silent: { command: NODE, args: [fixture('never-answers')] },
  floods: { command: NODE, args: [fixture('floods-stderr')] },
};

test('all servers are asked side by side: one table, and the details of those that do not work', async (t) => {
  const remote = await serveSdk('stateful');
  t.teardown(() => remote.close());
  const gone = await serveSdk('stateful');
  await gone.close();
  const servers = { works, 'far away': { url: remote.url.href }, gone: { url: gone.url.href }, ...BAD };
  const startedMs = performance.now();
  const { stdout, stderr, code } = await probe(t, servers, '--timeout', '4s');
  t.is(code, 69);
  t.is(stderr, '');
  const table = stdout.split('\n\n', 1)[0] ?? '';
  t.regex(table, /^Server +Speaks +Transport +Tools +Time +Verdict/);
  t.regex(table, /^works +legacy +stdio +1 +[\d.]+ ms +usable/m);
  t.regex(table, /^far away +legacy +Streamable HTTP +\d+ +[\d.]+ ms +usable/m);
  for (const name of ['gone', 'absent', 'ends', 'silent', 'floods'])
    t.regex(table, new RegExp(`^${name} +`, 'm'), name);
  for (const name of ['gone', 'absent', 'silent']) {
    t.regex(table, new RegExp(`^${name} .*not usable`, 'm'), name);
    t.true(stdout.includes(`── ${name} ──`), name);
  }
  t.false(stdout.includes('── works ──'));
  t.true(stdout.split('\n').every((line) => line.length <= 140));
  t.true(performance.now() - startedMs < 30_000);
});

test('only those that are named are asked, and the exit code is theirs', async (t) => {
  const { stdout, code } = await probe(t, { works, again: works, ...BAD }, 'works', 'again');
  t.is(code, 0);
  t.regex(stdout, /^works .*\nagain /m);
  t.notRegex(stdout, /absent/);
  const { stderr, code: wrong } = await probe(t, { works, again: works }, 'agian');
  t.is(wrong, 2);
  t.regex(stderr, /no server "agian"\. Did you mean again\?/);
});

test('--json: the reports of all of them, in the order of the file', async (t) => {
  const { stdout, code } = await probe(t, { absent: BAD.absent, works }, '--json');
  t.is(code, 69);
  const { format, servers } = JSON.parse(stdout);
  t.is(format, 1);
  t.like(servers, [
    { name: 'absent', report: { format: 1, verdict: 'unusable' } },
    { name: 'works', report: { format: 1, verdict: 'usable', target: { kind: 'command' } } },
  ]);
});
