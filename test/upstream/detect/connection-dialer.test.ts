/** Clients of both eras and a server that is started, with the translators and real processes. */

import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { callsOverSessions } from '../../../src/relay/dialer-adapters.ts';
import type { LinkOwner, SessionDialer, UpstreamDialer } from '../../../src/relay/ports.ts';
import { createSharedLegacyServer } from '../../../src/relay/shared/legacy/legacy-era.ts';
import { SharedModernServer } from '../../../src/relay/shared/modern/modern-era.ts';
import type { Connection, CreateLifeCheck } from '../../../src/upstream/connection.ts';
import {
  type ConnectionDialerOptions,
  createConnectionDialer,
} from '../../../src/upstream/detect/connection-dialer.ts';
import type { JoinEras } from '../../../src/upstream/detect/joined-dialers.ts';
import { HANDOVER_MS } from '../../../src/upstream/detect/opened-connections.ts';
import { createStdioConnector } from '../../../src/upstream/stdio/connector.ts';
import { RelayedClient } from '../../contract/relayed-client.ts';
import { fixture } from '../../process/child-spec.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { loneDialer } from '../../support/dialers.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import {
  createFakeDeps,
  FakeDialer,
  FakeLink,
  FakeServerListener,
  followLink,
  messagesOf,
  remainsOf,
} from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { startInetd } from '../../support/inetd.ts';
import { stopped } from '../../support/readiness.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialByteStream } from '../byte-stream/dial.ts';
import { CLIENT_INFO, joinErasWith } from '../join-eras.ts';
import { listTools, ModernRequest, modernFrame } from '../modern-request.ts';
import { RecordingConnector } from './recording-connector.ts';

interface Setup {
  /** Everything that was started. */
  readonly processes: RecordingConnector;
  readonly dialer: UpstreamDialer;
}

/** Everything that is started ends with the test. */
function start(
  t: ExecutionContext,
  name: string,
  { args = [], ...options }: Partial<ConnectionDialerOptions> & { readonly args?: readonly string[] } = {},
): Setup {
  const { deps } = createTestDeps();
  const processes = new RecordingConnector(
    createStdioConnector({
      ...loneDialer(),
      target: { kind: 'command', command: process.execPath, args: [fixture(name), ...args] },
      child: { cwd: undefined, env: { PATH: process.env.PATH ?? '' }, withheldEnv: [], pty: false },
      maxMessageBytes: 1024 * 1024,
      shutdownGraceMs: 2000,
      deps,
    }),
  );
  const dialer = createConnectionDialer({
    connections: processes,
    transport: 'stdio',
    connectionsFor: 'anybody',
    protocol: 'auto',
    joinEras: joinErasWith(deps),
    clientInfo: CLIENT_INFO,
    // Many servers start at once here.
    probeTimeoutMs: 60_000,
    isAwaited: false,
    learned: () => undefined,
    deps,
    ...options,
  });
  t.teardown(() => dialer.close());
  return { processes, dialer };
}

/** Names of the tools a legacy client sees, in a session of its own. */
async function listToolsInSession(dialer: SessionDialer): Promise<readonly unknown[]> {
  const client = new RelayedClient(dialer);
  await client.initialize();
  const { result, error } = await client.request('tools/list');
  if (result === undefined) throw new Error(JSON.stringify(error));
  client.close();
  return (result.tools as { readonly name: string }[]).map(({ name }) => name);
}

/** What was sent to each process; what follows the handshake is of no interest. */
const openings = ({ processes }: Setup) =>
  processes.sent.map((sent) => sent.filter((method) => method === 'initialize' || method === 'server/discover'));

const SESSION = ['initialize', 'notifications/initialized', 'tools/list'];
const SDK_V2 = ['echo', 'shout'];

// ---- legacy clients

for (const name of [
  'echo',
  'silent-before-initialize',
  'exits-at-unknown-request',
  'refuses-before-initialize',
  'both-eras-late',
  'prints-garbage',
]) {
  test(`a legacy client of ${name} is served by one process, which hears only from its client`, async (t) => {
    const { processes, dialer } = start(t, name);
    t.true((await listToolsInSession(dialer)).length > 0);
    t.deepEqual(processes.sent, [SESSION]);
    await listToolsInSession(dialer);
    t.deepEqual(processes.sent, [SESSION, SESSION]);
  });
}

test('a legacy client of a modern-only server is served by the process that refused its initialize', async (t) => {
  const setup = start(t, 'modern-only');
  t.deepEqual(await listToolsInSession(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup), [['initialize', 'server/discover']]);
  t.deepEqual(await listToolsInSession(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup).slice(1), [['server/discover']], 'known by then');
});

test('a client that calls a modern-only server without waiting for the answer to initialize is answered', async (t) => {
  const { dialer } = start(t, 'modern-only');
  const client = new RelayedClient(dialer);
  client.startInitialize();
  client.notify('notifications/initialized');
  t.like(await client.request('tools/list'), { result: { tools: SDK_V2.map((name) => ({ name })) } });
  client.close();
});

test('what a modern client is told after that needs no new question', async (t) => {
  const setup = start(t, 'modern-only');
  await listToolsInSession(setup.dialer);
  t.deepEqual(await listTools(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup).slice(1), [[]]);
});

test('an initialize that the server turns down is answered with its own words, and it is not started again', async (t) => {
  const { processes, dialer } = start(t, 'refuses-its-own-revision', { args: ['2025-01-01'] });
  const client = new RelayedClient(dialer);
  const { error } = await client.answer(client.startInitialize());
  t.like(error, { code: -32022, message: 'Unsupported protocol version' });
  t.deepEqual(processes.sent, [['initialize', 'server/discover']]);
  t.true(processes.connections[0]?.isClosed);
});

test('a server that exits at initialize is not started again; the client hears of its end', async (t) => {
  const { processes, dialer } = start(t, 'exits-before-initialize');
  const client = new RelayedClient(dialer);
  const { error } = await client.answer(client.startInitialize());
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_EXITED' } });
  t.is(processes.connections.length, 1);
});

test('a server of both eras is spoken to in the era of each client', async (t) => {
  const setup = start(t, 'both-eras');
  t.deepEqual(await listToolsInSession(setup.dialer), SDK_V2);
  t.deepEqual(await listTools(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup), [['initialize'], ['server/discover']]);
});

// ---- modern clients

test('the process of a modern server that answered discover serves the client, and sees no initialize', async (t) => {
  const { processes, dialer } = start(t, 'modern-only');
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.deepEqual(processes.sent, [['server/discover', 'tools/list']]);
});

for (const [name, args] of [
  ['refuses-before-initialize', ['-32601']],
  ['refuses-before-initialize', ['-32602']],
  ['refuses-before-initialize', ['0']],
  ['refuses-before-initialize', ['-32000']],
  ['prints-garbage', []],
] as const) {
  test(`${[name, ...args].join(' ')} serves modern clients with the process that was asked`, async (t) => {
    const { processes, dialer } = start(t, name, { args });
    t.true((await listTools(dialer)).length > 0);
    await listTools(dialer);
    t.deepEqual(processes.sent, [['server/discover', ...SESSION, 'tools/list']]);
  });
}

test('a server that is silent before initialize serves a modern client after the probe has timed out', async (t) => {
  const { processes, dialer } = start(t, 'silent-before-initialize', { probeTimeoutMs: 300 });
  t.deepEqual(await listTools(dialer), ['echo']);
  t.deepEqual(processes.sent, [['server/discover', 'initialize'], SESSION]);
});

test('a server that exits at the probe is started once more, and not asked again', async (t) => {
  const { processes, dialer } = start(t, 'exits-at-unknown-request');
  t.deepEqual(await listTools(dialer), ['echo']);
  t.deepEqual(processes.sent, [['server/discover'], ['initialize'], SESSION]);
  t.deepEqual(await listTools(dialer, { capabilities: { sampling: {} } }), ['echo']);
  t.deepEqual(await listToolsInSession(dialer), ['echo']);
  t.deepEqual(processes.sent.slice(3), [SESSION, SESSION]);
});

for (const [name, era, sent] of [
  ['exits-at-unknown-request', 'legacy', [['server/discover'], ['initialize'], SESSION]],
  ['modern-only', 'modern', [['server/discover', 'tools/list']]],
] as const) {
  test(`on a byte stream ${name} is found out as a process is, with a new connection for one that has ended`, async (t) => {
    const inetd = await startInetd([process.execPath, fixture(name)]);
    t.teardown(() => inetd.stop());
    const { deps } = createTestDeps();
    const address = { kind: 'tcp', host: '127.0.0.1', port: inetd.port, tls: 'off' } as const;
    const connections = new RecordingConnector(dialByteStream(address).dialer);
    const learned: unknown[] = [];
    const dialer = createConnectionDialer({
      connections,
      transport: 'byte-stream',
      connectionsFor: 'anybody',
      protocol: 'auto',
      joinEras: joinErasWith(deps),
      clientInfo: CLIENT_INFO,
      // Silence would count as an answer, and a busy machine may need long to start the program.
      probeTimeoutMs: 60_000,
      isAwaited: false,
      learned: ({ transport, era: spoken }) => void learned.push([transport, spoken]),
      deps,
    });
    t.teardown(() => dialer.close());
    t.true((await listTools(dialer)).includes('echo'));
    t.deepEqual(connections.sent, sent);
    t.deepEqual(learned, [['byte-stream', era]]);
  });
}

test('a server of both eras that took initialize serves as a legacy one; its late discovery is dropped', async (t) => {
  const { processes, dialer } = start(t, 'both-eras-late', { probeTimeoutMs: 300 });
  t.deepEqual(await listTools(dialer), ['echo']);
  t.deepEqual(await listTools(dialer), ['echo']);
  t.deepEqual(processes.sent, [
    ['server/discover', 'initialize'],
    [...SESSION, 'tools/list'],
  ]);
});

test('a modern-only server that starts slower than the probe waits serves a modern client', async (t) => {
  // It reads when what follows the probe waits for it, too.
  const { processes, dialer } = start(t, 'modern-only', { args: ['initialize'], probeTimeoutMs: 100 });
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.deepEqual(processes.sent, [['server/discover', 'initialize', 'tools/list']]);
});

test('50 modern requests at the same time make for one process, one discover and one initialize', async (t) => {
  const setup = start(t, 'refuses-before-initialize');
  const all = await Promise.all(Array.from({ length: 50 }, () => listTools(setup.dialer)));
  t.is(all.length, 50);
  t.deepEqual(openings(setup), [['server/discover', 'initialize']]);
});

test('the server is told what its first client can do, and one that can do more gets another process', async (t) => {
  const setup = start(t, 'echo');
  await Promise.all([
    listTools(setup.dialer, { capabilities: { elicitation: {} } }),
    listTools(setup.dialer, { capabilities: { sampling: {} } }),
  ]);
  t.deepEqual(openings(setup), [['server/discover', 'initialize'], ['initialize']]);
});

test('a process that was asked for a client which left serves the next one, whatever that can do', async (t) => {
  const setup = start(t, 'echo');
  const first = new ModernRequest(setup.dialer, 'tools/list', { capabilities: { elicitation: {} } });
  const second = listTools(setup.dialer, { capabilities: { sampling: {} } });
  first.link.close(new BridgeError('ERR_SESSION_CLOSED', 'left'));
  t.deepEqual(await second, ['echo']);
  t.deepEqual(openings(setup), [['server/discover', 'initialize']]);
});

test('a server that is no server is reported to each client that waited, and started anew for the next', async (t) => {
  const { processes, dialer } = start(t, 'exits-before-initialize');
  const failed = await Promise.allSettled([listTools(dialer), listTools(dialer)]);
  for (const outcome of failed) {
    t.is(outcome.status === 'rejected' && outcome.reason.code, 'ERR_UPSTREAM_EXITED');
  }
  t.is(processes.connections.length, 2);
});

test('a server that is being looked at ends with the dialer', async (t) => {
  const { processes, dialer } = start(t, 'never-answers');
  const request = new ModernRequest(dialer);
  const session = new RelayedClient(dialer);
  session.startInitialize();
  await waitFor(() => processes.connections.length === 2);
  await dialer.close();
  t.deepEqual(request.listener.received, []);
  t.is(processes.connections.length, 2);
});

test('all requests of one pipe go through one link, and wait for the verdict together', async (t) => {
  const { processes, dialer } = start(t, 'modern-only');
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => dialer.dialCalls(owner, { principal: 'pipe', headers: undefined }));
  for (const id of [1, 2]) link.send(modernFrame(id, 'tools/list', {}));
  await waitFor(() => listener.received.length === 2, { message: 'both answers' });
  t.deepEqual(
    listener.received.map(({ frame }) => frame.id),
    [1, 2],
  );
  t.deepEqual(processes.sent, [['server/discover', 'tools/list', 'tools/list']]);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'done'));
});

/** One process of a modern server for everybody. */
const joinShared: JoinEras = ({ legacy, modern: dialer }) => {
  const { deps } = createTestDeps();
  const modern = new SharedModernServer({ dialer, deps, prewarm: false });
  return { ...joinErasWith(deps)({ legacy, modern, modernForOne: modern }), modern };
};

for (const first of ['legacy', 'modern'] as const) {
  test(`a modern server that is shared has one process, the one that its first client, a ${first} one, started`, async (t) => {
    const setup = start(t, 'modern-only', { joinEras: joinShared });
    const { dialer } = setup;
    if (first === 'legacy') t.deepEqual(await listToolsInSession(dialer), SDK_V2);
    t.deepEqual(await listTools(dialer), SDK_V2);
    t.deepEqual(await listTools(dialer), SDK_V2);
    const opening = first === 'legacy' ? ['initialize', 'server/discover'] : ['server/discover'];
    t.deepEqual(openings(setup), [opening]);
  });
}

// ---- one process for everybody

/** As with `--isolation shared`. */
function joinAll(warmed: string[] = []): JoinEras {
  return ({ legacy: ofLegacy, modern: ofModern }) => {
    const { deps } = createTestDeps();
    const options = { deps, prewarm: false };
    const legacy = createSharedLegacyServer({
      ...options,
      dialer: ofLegacy,
      handshakeTimeoutMs: 0,
      clientInfo: CLIENT_INFO,
    });
    const modern = new SharedModernServer({ ...options, dialer: ofModern });
    const { legacyToModern, modernToLegacy } = joinErasWith(deps)({ legacy, modern, modernForOne: modern });
    return {
      modern,
      legacyToModern,
      modernToLegacy,
      sessions: {
        kind: 'shared',
        dialer: legacy,
        startInitialized: (result) => legacy.startInitialized(result),
        warm(era) {
          warmed.push(era);
          (era === 'legacy' ? legacy : modern).keepWarm();
        },
      },
    };
  };
}

for (const [name, first, opening] of [
  ['echo', 'legacy', ['initialize']],
  ['echo', 'modern', ['server/discover', 'initialize']],
  ['both-eras', 'legacy', ['initialize']],
  ['both-eras', 'modern', ['server/discover']],
  ['modern-only', 'legacy', ['initialize', 'server/discover']],
  ['modern-only', 'modern', ['server/discover']],
] as const) {
  test(`one process of ${name} serves clients of both eras, in the one it was met in by a ${first} client`, async (t) => {
    const setup = start(t, name, { joinEras: joinAll() });
    const { dialer } = setup;
    const tools = first === 'legacy' ? await listToolsInSession(dialer) : await listTools(dialer);
    t.true(tools.length > 0);
    t.deepEqual(await listToolsInSession(dialer), tools);
    t.deepEqual(await listTools(dialer), tools);
    // Each session of a legacy client may ask a modern server once more what it offers.
    t.deepEqual(openings(setup)[0]?.slice(0, opening.length), opening);
    t.is(setup.processes.connections.length, 1);
  });
}

test('clients of both eras that come at once are served by one process', async (t) => {
  const setup = start(t, 'echo', { joinEras: joinAll() });
  const { dialer } = setup;
  const seen = await Promise.all([listTools(dialer), listToolsInSession(dialer), listTools(dialer)]);
  t.deepEqual(seen[0], seen[1]);
  t.deepEqual(seen[0], seen[2]);
  t.is(setup.processes.connections.length, 1);
});

for (const [name, era] of [
  ['echo', 'legacy'],
  ['modern-only', 'modern'],
] as const) {
  test(`a server that is awaited is found out and kept ready without a client: ${name}`, async (t) => {
    const warmed: string[] = [];
    const setup = start(t, name, { joinEras: joinAll(warmed), isAwaited: true });
    await waitFor(() => warmed.length > 0, { message: 'the verdict' });
    t.deepEqual(warmed, [era]);
    t.true((await listTools(setup.dialer)).length > 0);
    t.is(setup.processes.connections.length, 1);
  });
}

test('a server that is awaited and does not come up is tried again', async (t) => {
  const { processes, clock, dialer } = startFake({ joinEras: joinAll(), isAwaited: true });
  await waitFor(() => processes.dialed.length === 1, { message: 'the first try' });
  processes.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  const tryAgain = () => {
    clock.advance(100);
    return processes.dialed.length > 1;
  };
  await waitFor(tryAgain, { message: 'the next try' });
  await dialer.close();
  t.is(processes.dialed.length, 2);
});

test('a server that is awaited and does not come up is tried again when nothing is left of it', async (t) => {
  const { processes, clock, dialer } = startFake({ joinEras: joinAll(), isAwaited: true });
  await waitFor(() => processes.dialed.length === 1, { message: 'the first try' });
  const { end } = remainsOf(processes.latest.link);
  processes.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  await clock.advanceInSteps(10_000, 100);
  t.is(processes.dialed.length, 1);
  await end();
  await clock.advanceInSteps(10_000, 100);
  t.is(processes.dialed.length, 2);
  await dialer.close();
});

// ---- told by the user

test('--protocol legacy asks no process for the modern era', async (t) => {
  const setup = start(t, 'both-eras', { protocol: 'legacy' });
  t.deepEqual(await listTools(setup.dialer), SDK_V2);
  t.deepEqual(await listToolsInSession(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup), [['initialize'], ['initialize']]);
});

test('--protocol modern sends no process initialize', async (t) => {
  const setup = start(t, 'both-eras', { protocol: 'modern' });
  t.deepEqual(await listTools(setup.dialer), SDK_V2);
  t.deepEqual(await listToolsInSession(setup.dialer), SDK_V2);
  t.deepEqual(openings(setup), [[], ['server/discover']]);
});

// ---- without processes

function startFake(options: Partial<ConnectionDialerOptions> = {}) {
  const deps = createFakeDeps();
  const processes = new FakeConnector();
  const dialer = createConnectionDialer({
    isAwaited: false,
    learned: () => undefined,
    connections: processes,
    transport: 'stdio',
    connectionsFor: 'anybody',
    protocol: 'auto',
    joinEras: joinErasWith(deps),
    clientInfo: CLIENT_INFO,
    deps,
    ...options,
  });
  return { processes, dialer, clock: deps.clock };
}

/** Everything that can go on has. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const INITIALIZE = clientFrame({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
const REFUSAL = { id: 1, error: { code: -32601, message: 'no' } };

test('a process is started when the session is dialed, and what comes up to initialize passes at once', async (t) => {
  const { processes, dialer } = startFake();
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => dialer.dial(owner));
  const server = processes.latest;
  link.send(clientFrame({ id: 0, method: 'ping' }));
  link.send(INITIALIZE);
  t.is(server.link.sent[1]?.frame, INITIALIZE);
  const answer = serverFrame({ id: 1, result: {} });
  server.listener.fromServer(answer);
  await settled();
  t.is(listener.received[0]?.frame, answer);
  server.link.hasCapacity = false;
  t.false(link.send(clientFrame({ id: 2, method: 'tools/list' })));
  server.listener.serverDrained();
  t.is(listener.drains, 1);
});

test('a session after the first that succeeded has nothing between it and its process', async (t) => {
  const { processes, dialer } = startFake();
  dialer.dial(new FakeServerListener()).send(INITIALIZE);
  processes.latest.listener.fromServer(serverFrame({ id: 1, result: {} }));
  await settled();
  const listener = new FakeServerListener();
  t.is(dialer.dial(listener), processes.latest.link);
  t.is(processes.latest.link.listener, listener);
});

test('while a server that refused is asked for its era the client waits, and learns of the refusal if that is all', async (t) => {
  const { processes, dialer, clock } = startFake();
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => dialer.dial(owner));
  link.send(INITIALIZE);
  const server = processes.latest;
  server.listener.fromServer(serverFrame(REFUSAL));
  await settled();
  t.deepEqual(listener.received, []);
  link.send(clientFrame({ method: 'notifications/initialized' }));
  t.is(server.link.sent.length, 2);
  clock.advance(10_000);
  await waitFor(() => listener.received.length === 1);
  t.like(messagesOf(listener.received), [REFUSAL]);
  t.is(server.link.sent.length, 3);
});

test('what a client says before its initialize is answered waits, but for what the server may be waiting for', async (t) => {
  const { processes, dialer } = startFake();
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => dialer.dial(owner));
  const { link: server, listener: fromServer } = processes.latest;
  link.send(INITIALIZE);
  link.send(clientFrame({ method: 'notifications/initialized' }));
  link.send(clientFrame({ id: 2, method: 'tools/list' }));
  link.send(clientFrame({ id: 'alive?', result: {} }));
  t.like(messagesOf(server.sent), [{ id: 1 }, { id: 'alive?', result: {} }]);
  fromServer.fromServer(serverFrame({ id: 1, result: {} }));
  await settled();
  t.like(messagesOf(server.sent).slice(2), [{ method: 'notifications/initialized' }, { id: 2, method: 'tools/list' }]);
  link.send(clientFrame({ id: 3, method: 'tools/list' }));
  t.like(messagesOf(server.sent).slice(4), [{ id: 3 }]);
});

test('a refusal that is no JSON is passed on like any other', async (t) => {
  const { processes, dialer, clock } = startFake();
  const listener = new FakeServerListener();
  dialer.dial(listener).send(INITIALIZE);
  const refusal = serverFrame('{"jsonrpc":"2.0","id":1,"error":{"code":NaN,"message":"no"}}');
  processes.latest.listener.fromServer(refusal);
  await settled();
  const { frame } = processes.latest.link.sent[1] ?? {};
  t.notThrows(() =>
    processes.latest.listener.fromServer(serverFrame(`{"jsonrpc":"2.0","id":${frame?.id},"result":{"a":NaN}}`)),
  );
  await waitFor(() => listener.received.length === 1);
  t.is(listener.received[0]?.frame, refusal);
  t.is(clock.pendingTimers, 0);
});

test('a server that exits when it is asked for its era leaves its refusal, and then its end', async (t) => {
  const { processes, dialer } = startFake();
  const listener = new FakeServerListener();
  dialer.dial(listener).send(INITIALIZE);
  processes.latest.listener.fromServer(serverFrame(REFUSAL));
  await settled();
  processes.latest.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'exited'));
  await settled();
  t.like(messagesOf(listener.received), [REFUSAL]);
  t.is(listener.closedWith[0]?.code, 'ERR_UPSTREAM_EXITED');
  t.is(processes.dialed.length, 1);
});

test('a client that leaves while its server is asked takes the process with it, and no timer stays', async (t) => {
  const { processes, dialer, clock } = startFake();
  const link = followLink(new FakeServerListener(), (owner) => dialer.dial(owner));
  link.send(INITIALIZE);
  processes.latest.listener.fromServer(serverFrame(REFUSAL));
  await settled();
  t.is(clock.pendingTimers, 1);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'left'));
  t.is(processes.latest.link.closedWith.length, 1);
  t.is(clock.pendingTimers, 0);
});

test('a process that detection started and nobody wants anymore is closed after a while', async (t) => {
  const { processes, dialer, clock } = startFake();
  const request = new ModernRequest(dialer);
  await waitFor(() => processes.dialed.length === 1);
  request.link.close(new BridgeError('ERR_SESSION_CLOSED', 'left'));
  const { link, listener } = processes.latest;
  const result = { supportedVersions: ['2026-07-28'], capabilities: {} };
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result }));
  // The verdict is a matter of a few promises.
  await settled();
  clock.advance(HANDOVER_MS - 1);
  t.is(link.closedWith.length, 0);
  clock.advance(1);
  t.is(link.closedWith.length, 1);
  t.is(clock.pendingTimers, 0);
});

test('a process that ended before anybody wanted it is not given out', async (t) => {
  const { processes, dialer } = startFake();
  const request = new ModernRequest(dialer);
  await waitFor(() => processes.dialed.length === 1);
  request.link.close(new BridgeError('ERR_SESSION_CLOSED', 'left'));
  const { link, listener } = processes.latest;
  const result = { supportedVersions: ['2026-07-28'], capabilities: {} };
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result }));
  listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'exited'));
  await settled();
  new ModernRequest(dialer);
  t.is(processes.dialed.length, 2);
  t.like(messagesOf(processes.latest.link.sent), [{ method: 'tools/list' }]);
});

test('a process whose client could not keep up is handed on without a halt', async (t) => {
  const { processes, dialer } = startFake({
    joinEras: ({ modern, legacy }) => {
      const dial = (listener: LinkOwner) => {
        modern.dial(listener);
        return new FakeLink();
      };
      return {
        legacyToModern: Object.assign(new FakeDialer(), { dial }),
        modernToLegacy: callsOverSessions(legacy),
        modern,
        sessions: { kind: 'own' },
      };
    },
  });
  const link = followLink(new FakeServerListener(), (owner) => dialer.dial(owner));
  link.send(INITIALIZE);
  link.pause();
  t.true(processes.latest.link.isPaused);
  const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } };
  processes.latest.listener.fromServer(serverFrame({ id: 1, error }));
  await waitFor(() => !processes.latest.link.isPaused);
  t.is(processes.dialed.length, 1);
});

test('a process is checked for hanging unless one session has it to itself', (t) => {
  const checked: Connection[] = [];
  const check: CreateLifeCheck = (connection) => {
    checked.push(connection);
    return { sent: () => {}, takes: () => false, paused: () => {}, resumed: () => {}, ended: () => {} };
  };
  const { processes, dialer } = startFake({ protocol: 'modern', lifeChecks: { legacy: check, modern: check } });
  dialer.dial(new FakeServerListener());
  t.is(processes.dialed.length, 1);
  t.deepEqual(checked, []);
  new ModernRequest(dialer);
  t.is(processes.dialed.length, 2);
  t.deepEqual(checked, [processes.latest.link]);
});

test('what cannot be started is not dialed, and the dialer is not ready', (t) => {
  const { processes, dialer } = startFake();
  const error = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'it exits each time');
  processes.failure = error;
  processes.readinessNow = stopped(error);
  t.is(
    t.throws(() => dialer.dial(new FakeServerListener())),
    error,
  );
  t.like(dialer.readiness(), { state: 'stopped', error });
});

test('closing the dialer closes the processes, and nothing is started anymore', async (t) => {
  const { processes, dialer } = startFake();
  await dialer.close();
  t.true(processes.isClosed);
  t.throws(() => dialer.dial(new FakeServerListener()), { message: /shutting down/ });
});
