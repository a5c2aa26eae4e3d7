/** The report on servers that are started, and that none of them stays behind. */
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { CommandTarget } from '../../src/config/server.ts';
import { fixture } from '../process/child-spec.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { descendantsOf } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { adviceIn, conclusionOf, offerOf, type ProbeRun, probe, working } from './run.ts';

const server = (name: string, ...args: string[]): CommandTarget => ({
  kind: 'command',
  command: process.execPath,
  args: [fixture(name), ...args],
});

const probeServer = (name: string, args: readonly string[] = [], run: ProbeRun = {}) =>
  probe(server(name, ...args), run);

/** What the test runner itself has started. */
const others = new Set(descendantsOf(process.pid));

test.afterEach.always('no server stays behind', async () => {
  await waitFor(() => descendantsOf(process.pid).every((pid) => others.has(pid)), { message: 'all servers to end' });
});

test.serial(
  'the aggregate is asked by the command that connects to it, and every client uses it by mcp-portage',
  async (t) => {
    const child = { cwd: undefined, env: {}, withheldEnv: [], pty: false };
    const aggregate = { target: server('echo'), child, shown: '--config mcp.json --aggregate' };
    const report = await probe({ kind: 'aggregate', shows: 'all' }, { aggregate });
    t.deepEqual(report.target, { kind: 'aggregate', name: 'aggregate' });
    t.is(conclusionOf(report), 'usable (0)');
    t.like(adviceIn(report), {
      'stdio-legacy': 'mcp-portage connect --config mcp.json --aggregate',
      'streamable-http-modern': 'mcp-portage serve --config mcp.json --aggregate',
    });
  },
);

test.serial('a legacy server is asked everything in one process', async (t) => {
  const report = await probeServer('echo');
  t.is(conclusionOf(report), 'usable (0)');
  t.deepEqual(working(report), ['stdio legacy']);
  t.like(offerOf(report, 'stdio legacy'), {
    serverInfo: { name: 'stub', version: '1.0.0' },
    revision: '2025-11-25',
    session: undefined,
    tools: { state: 'counted', count: 1, isComplete: true },
    prompts: { state: 'not-declared' },
  });
  t.deepEqual(
    report.steps.map(({ request }) => request),
    ['server/discover', 'initialize', 'tools/list'],
  );
});

test.serial('a server of both eras is found to speak both, in a process each', async (t) => {
  const report = await probeServer('both-eras');
  t.is(conclusionOf(report), 'usable (0)');
  t.deepEqual(working(report), ['stdio modern', 'stdio legacy']);
  for (const name of working(report)) t.like(offerOf(report, name), { tools: { state: 'counted', count: 2 } });
  t.like(adviceIn(report), { 'stdio-legacy': 'direct', 'stdio-modern': 'direct' });
});

test.serial('a modern-only server is usable, by legacy clients through mcp-portage', async (t) => {
  const report = await probeServer('modern-only');
  t.is(conclusionOf(report), 'usable (0)');
  t.deepEqual(working(report), ['stdio modern']);
  t.like(offerOf(report, 'stdio modern'), {
    serverInfo: { name: 'sdk-v2', version: '2.0.0' },
    revision: '2026-07-28',
    supportedRevisions: ['2026-07-28'],
    session: undefined,
    tools: { state: 'counted', count: 2, isComplete: true },
  });
  const command = `-- ${process.execPath} ${fixture('modern-only')}`;
  t.deepEqual(adviceIn(report), {
    'stdio-legacy': `mcp-portage connect ${command}`,
    'http-sse': `mcp-portage serve ${command}`,
    'streamable-http-legacy': `mcp-portage serve ${command}`,
    'streamable-http-modern': `mcp-portage serve ${command}`,
    'stdio-modern': 'direct',
  });
});

test.serial('clients over HTTP are told to serve the command, credentials left out', async (t) => {
  const args = ['--api-key', 'k1', '--token=k2', 'postgres://user:k3@db/x', 'with space'];
  const command = `-- ${process.execPath} ${fixture('echo')} --api-key … --token=… postgres://…@db/x 'with space'`;
  const report = await probeServer('echo', args);
  t.deepEqual(adviceIn(report), {
    'stdio-legacy': 'direct',
    'http-sse': `mcp-portage serve ${command}`,
    'streamable-http-legacy': `mcp-portage serve ${command}`,
    'streamable-http-modern': `mcp-portage serve ${command}`,
    'stdio-modern': `mcp-portage connect ${command}`,
  });
  t.notRegex(JSON.stringify(report), /k[123]/);
});

for (const type of ['text', 'fraction', 'batch']) {
  test.serial(`a server that returns each id as a ${type} is usable`, async (t) => {
    const report = await probeServer('changes-ids', [type]);
    t.is(conclusionOf(report), 'usable (0)');
    t.like(offerOf(report, 'stdio legacy'), { tools: { state: 'counted', count: 1, isComplete: true } });
  });
}

test.serial('a server that writes messages behind Content-Length headers is told apart', async (t) => {
  const report = await probeServer('frames-by-length', ['lines']);
  t.is(conclusionOf(report), 'unusable (69)');
  t.regex(report.problems.join(), /behind Content-Length headers, as the Language Server Protocol does/);
});

test.serial(
  'for a server that reads only messages behind Content-Length headers, that is named as a possible reason',
  async (t) => {
    const report = await probeServer('frames-by-length', ['frames'], { timeoutMs: 2000 });
    t.is(conclusionOf(report), 'unusable (69)');
    t.regex(report.problems.join(), /may also wait for a Content-Length header before each message/);
  },
);

test.serial('a server that exits at the probe is started again', async (t) => {
  const report = await probeServer('exits-at-unknown-request');
  t.is(conclusionOf(report), 'usable (0)');
  t.deepEqual(
    report.steps.map(({ request, saw }) => `${request}: ${saw}`),
    ['server/discover: the server exited', 'initialize: answered', 'tools/list: answered'],
  );
});

test.serial('a server that is silent before initialize costs half of the time limit', async (t) => {
  const clock = new FakeClock();
  const reporting = probeServer('silent-before-initialize', [], { timeoutMs: 6000, clock });
  await waitFor(() => descendantsOf(process.pid).some((pid) => !others.has(pid)), { message: 'a server' });
  clock.advance(3000);
  const report = await reporting;
  t.is(conclusionOf(report), 'usable (0)');
  t.is(report.steps[0]?.saw, 'no answer within 3000 ms');
});

test.serial('a server that never answers is reported when the time is up', async (t) => {
  const report = await probeServer('never-answers', [], { timeoutMs: 1000 });
  t.is(conclusionOf(report), 'unusable (69)');
  t.regex(
    report.problems.join(),
    /time limit of 1000 ms was reached\. The server runs but has not answered.* by its URL\.$/,
  );
});

test.serial('a server that does not want to end does not hold up the report for long', async (t) => {
  const script = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`;
  const startedMs = performance.now();
  const report = await probe({ kind: 'command', command: process.execPath, args: ['-e', script] }, { timeoutMs: 1000 });
  const tookMs = performance.now() - startedMs;
  t.true(tookMs < 30_000, `${tookMs} ms; running calls would get 30 s, and the server as much again`);
  t.deepEqual(
    report.steps.map(({ saw }) => saw),
    ['no answer within 500 ms'],
    'that it was ended is no answer',
  );
});

test.serial('a server that exits is reported with its last words', async (t) => {
  const report = await probeServer('exits-before-initialize');
  t.is(conclusionOf(report), 'unusable (69)');
  t.is(report.problems.length, 1);
  t.regex(
    report.problems[0] ?? '',
    /^Server "node exits-before-initialize\.js" exited with code 3 .*SOME_KEY is not set .* \(ERR_UPSTREAM_EXITED\)$/,
  );
});

test.serial('a program that does not exist is reported', async (t) => {
  const report = await probe({ kind: 'command', command: 'no-such-program-here', args: [] });
  t.is(conclusionOf(report), 'unusable (69)');
  t.regex(report.problems.join(), /no-such-program-here/);
});

test.serial('--protocol pins the era', async (t) => {
  const legacy = await probeServer('both-eras', [], { protocol: 'legacy' });
  t.deepEqual(working(legacy), ['stdio legacy']);
  const modern = await probeServer('both-eras', [], { protocol: 'modern' });
  t.deepEqual(working(modern), ['stdio modern']);
});

test.serial(
  'a modern server that is asked in the legacy era alone is reported with the option that asks it',
  async (t) => {
    const report = await probeServer('modern-only', [], { protocol: 'legacy' });
    t.is(conclusionOf(report), 'unusable (69)');
    t.deepEqual(report.problems, ['It speaks only 2026-07-28, which is not looked for here. Add --protocol modern.']);
  },
);

test.serial('what is waited for is told as it changes', async (t) => {
  const waits: string[] = [];
  await probeServer('echo', [], { waiting: (what) => waits.push(what) });
  t.deepEqual(waits, ['node echo.js to answer', 'the answer to tools/list']);
});

test.serial('a server that takes longer than a minute to start is waited for until the time limit', async (t) => {
  const clock = new FakeClock();
  const reporting = probeServer('never-answers', [], { timeoutMs: 120_000, clock });
  await waitFor(() => descendantsOf(process.pid).some((pid) => !others.has(pid)), { message: 'a server' });
  for (let second = 0; second < 120; second++) {
    clock.advance(1000);
    await setImmediate();
  }
  const { problems, steps } = await reporting;
  t.regex(problems.join(), /^The time limit of 120 s was reached\. The server runs but has not answered\./);
  t.deepEqual(
    steps.map(({ saw }) => saw),
    ['no answer within 4000 ms'],
  );
});
