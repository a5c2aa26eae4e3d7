import test from 'ava';
import type { InspectedServer } from '../../../src/observe/inspection.ts';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { listedIn } from '../../../src/observe/top/listed.ts';
import { FIRST_VIEW, type ViewState } from '../../../src/observe/top/view-state.ts';
import {
  client,
  FAILED,
  inspectedServer,
  inspection,
  LEGACY_STDIO,
  NO_REFUSALS,
  runCall,
  WallClock,
} from '../status/seen.ts';

const SERVERS: readonly Partial<InspectedServer>[] = [
  { name: 'idle', state: 'not-started', openCalls: 0 },
  { name: 'weather', state: 'ready', openCalls: 3 },
  { name: 'mail', state: 'stopped', openCalls: 0 },
  { name: 'files', state: 'ready', openCalls: 1 },
  { name: 'notes', state: 'failing', openCalls: 0 },
  { name: 'new', state: 'starting', openCalls: 0 },
];

function listed(state: Partial<ViewState>) {
  const activity = new Activity({ wallClock: new WallClock().now });
  const cursor = client({ name: 'Cursor', server: 'weather' });
  const code = client({ name: 'code', server: 'files' });
  for (const one of [cursor, code]) activity.connected(one, LEGACY_STDIO);
  runCall(activity, { client: cursor, tool: 'get_forecast' }, { durationMs: 500 });
  for (let index = 0; index < 2; index += 1) {
    runCall(activity, { client: code, tool: 'read_file' }, { durationMs: 10, outcome: FAILED });
  }
  const servers = SERVERS.map(inspectedServer);
  const sources = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };
  const status = createStatus({ ...sources, inspect: () => inspection({ servers }), activity })();
  const found = listedIn(status, { ...FIRST_VIEW, ...state });
  return {
    servers: found.servers.map(({ name }) => name).join(' '),
    clients: found.clients
      .map(({ name }) => name)
      .sort()
      .join(' '),
    tools: [...new Set(found.calls.map(({ tool }) => tool))].sort().join(' '),
  };
}

test('servers that fail come first, and others stay in the order of the configuration', (t) => {
  t.is(listed({}).servers, 'mail notes new weather files idle');
  t.is(listed({ order: 'reversed' }).servers, 'idle files weather new notes mail');
});

for (const [sort, expected] of [
  ['name', 'files idle mail new notes weather'],
  ['open calls', 'weather files idle mail notes new'],
  ['calls a minute', 'files weather idle mail notes new'],
  ['errors', 'files idle weather mail notes new'],
  ['p95', 'weather files idle mail notes new'],
] as const) {
  test(`servers are sorted by ${sort}`, (t) => {
    t.is(listed({ sort }).servers, expected);
  });
}

test('a filter finds servers, clients and tools, and whatever belongs to them', (t) => {
  const all = { servers: 'mail notes new weather files idle', clients: 'Cursor code', tools: 'get_forecast read_file' };
  t.deepEqual(listed({ filter: '' }), all);
  t.deepEqual(listed({ filter: 'WEATH' }), { servers: 'weather', clients: 'Cursor', tools: 'get_forecast' });
  t.deepEqual(listed({ filter: 'cursor' }), { servers: 'weather', clients: 'Cursor', tools: 'get_forecast' });
  t.deepEqual(listed({ filter: 'read_' }), { servers: 'files', clients: 'code', tools: 'read_file' });
  t.deepEqual(listed({ filter: 'notes' }), { servers: 'notes', clients: '', tools: '' });
  t.deepEqual(listed({ filter: 'nothing' }), { servers: '', clients: '', tools: '' });
});
