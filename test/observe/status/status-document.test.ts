import test from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { inspectedServer, inspection, NO_REFUSALS, runCall, START_MS, USAGE, WallClock } from './seen.ts';

const SOURCES = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };

function createActivity(): Activity {
  return new Activity({ wallClock: new WallClock().now });
}

test('has the shape that programs rely on', (t) => {
  const activity = createActivity();
  runCall(activity);
  const status = createStatus({ ...SOURCES, inspect: () => inspection(), activity });
  const series = { stepMs: 5000, steps: 120, atMs: [START_MS], calls: [1], errors: [0], p50Ms: [12], p95Ms: [12] };
  const lastMinute = { calls: 1, errors: 0, p50Ms: 12, p95Ms: 12 };
  const document = status();
  t.deepEqual(document, {
    shape: 2,
    atMs: START_MS,
    inspect: false,
    replicas: null,
    bridge: {
      version: '0.1.0',
      startedAtMs: START_MS - 7_200_000,
      openCalls: 1,
      maxOpenCalls: 1000,
      processes: 2,
      maxProcesses: 100,
    },
    servers: [
      {
        name: 'everything',
        url: 'http://127.0.0.1:8808/everything/mcp',
        sseUrl: 'http://127.0.0.1:8808/everything/sse',
        sseSunset: null,
        wsUrl: 'ws://127.0.0.1:8808/everything/ws',
        hubs: [],
        kind: 'command',
        state: 'ready',
        sinceMs: null,
        problem: null,
        speaks: { transport: 'stdio', era: 'legacy', revision: '2025-11-25' },
        sessions: 2,
        openCalls: 1,
        processes: 2,
        restarts: 0,
        lastMinute,
        series,
      },
    ],
    clients: [],
    moreClients: 0,
    calls: { open: 0, longestOpen: [], lastMinute, series, recent: document.calls.recent },
    refused: { total: 0, lastHour: 0, byCode: [] },
    usage: null,
    snippets: [],
    detail: null,
  });
  t.deepEqual(JSON.parse(JSON.stringify(document)), document, 'nothing in it is lost as JSON');
});

test('says null where something is not known', (t) => {
  const servers = [inspectedServer({ sseUrl: undefined, verdicts: [], state: 'stopped', problem: 'It hung.' })];
  const status = createStatus({ ...SOURCES, inspect: () => inspection({ servers }), activity: createActivity() });
  t.like(status().servers[0], { sseUrl: null, speaks: null, problem: 'It hung.' });
});

test('has the usage, and the snippets of the hosts that can use a server', (t) => {
  const servers = [inspectedServer(), inspectedServer({ name: 'weather' })];
  const status = createStatus({
    inspect: () => inspection({ servers }),
    activity: createActivity(),
    refusals: NO_REFUSALS,
    usage: () => USAGE,
    hosts: ['cursor', 'vscode'],
    snippets: (host, { name }) => (host === 'vscode' && name === 'weather' ? undefined : `${host} ${name}`),
  });
  t.deepEqual(status().usage, USAGE);
  t.deepEqual(status().snippets, [
    { host: 'cursor', server: 'everything', text: 'cursor everything' },
    { host: 'vscode', server: 'everything', text: 'vscode everything' },
    { host: 'cursor', server: 'weather', text: 'cursor weather' },
  ]);
});
