/** Who may come in over gRPC is decided as for every other request, and told as a status. */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { ADMISSION_CHECK_MS } from '../../../src/downstream/listener/admitted-streams.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { Authenticator } from '../../../src/http/auth/callers.ts';
import { checkHealth, watchHealth } from '../../support/grpc-peers.ts';
import { initialize } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type GrpcBridgeOptions, openGrpcBridge } from './grpc-bridge.ts';
import { END_HEADERS, FRAME_TYPES, openCall, openConnection, openFrames, sessionHeaders } from './raw-call.ts';

/** Knows alice, as long as she is welcome; bob lacks a scope. */
function createDoor() {
  const door = { isAliceWelcome: true };
  const authenticator: Authenticator = {
    authenticate({ headers: { authorization } }, decided) {
      if (authorization === 'Bearer of-alice' && door.isAliceWelcome) {
        return decided({ kind: 'principal', principal: 'alice' });
      }
      const code = authorization === 'Bearer of-bob' ? 'ERR_AUTH_SCOPE' : 'ERR_AUTH_TOKEN';
      const error = new BridgeError(authorization === undefined ? 'ERR_AUTH_REQUIRED' : code, 'No.');
      decided({ kind: 'refused', refusal: { error, challenge: 'Bearer' } });
    },
  };
  return { door, authenticator };
}

interface Trial {
  readonly what: string;
  readonly options?: GrpcBridgeOptions;
  readonly headers: Readonly<Record<string, string>>;
  readonly code: number;
}

const { authenticator: ONLY_ALICE } = createDoor();
const REFUSED: readonly Trial[] = [
  { what: 'a page of another web origin', headers: { origin: 'https://evil.example' }, code: status.PERMISSION_DENIED },
  { what: 'a page that hides its origin', headers: { 'sec-fetch-site': 'cross-site' }, code: status.PERMISSION_DENIED },
  {
    what: 'a name that is made to lead here',
    headers: { ':authority': 'rebound.test' },
    code: status.PERMISSION_DENIED,
  },
  { what: 'a host beside another authority', headers: { host: 'rebound.test' }, code: status.PERMISSION_DENIED },
  { what: 'the bridge itself', headers: { 'x-mcp-portage-bridge': 'mark' }, code: status.FAILED_PRECONDITION },
  {
    what: 'a caller without a token',
    options: { authenticator: ONLY_ALICE },
    headers: {},
    code: status.UNAUTHENTICATED,
  },
  {
    what: 'a caller with a wrong token',
    options: { authenticator: ONLY_ALICE },
    headers: { authorization: 'Bearer x' },
    code: status.UNAUTHENTICATED,
  },
  {
    what: 'a caller whose token lacks a scope',
    options: { authenticator: ONLY_ALICE },
    headers: { authorization: 'Bearer of-bob' },
    code: status.PERMISSION_DENIED,
  },
];

for (const { what, options, headers, code } of REFUSED) {
  test(`refuses ${what} with status ${code}, before anything is started`, async (t) => {
    const refused: string[] = [];
    const bridge = await openGrpcBridge(t, { ...options, onRefused: (reason) => void refused.push(reason) });
    const { headers: answer } = await openCall(openConnection(t, bridge.port), headers).ended;
    t.is(answer['grpc-status'], String(code));
    t.is(refused.length, 1);
    t.is(bridge.server.connections.length, 0);
  });
}

test('two tokens are none: one could be of the caller, and one of a proxy', async (t) => {
  const refused: string[] = [];
  const { authenticator } = createDoor();
  const bridge = await openGrpcBridge(t, { authenticator, onRefused: (reason) => void refused.push(reason) });
  const { socket, frame } = await openFrames(bridge.port);
  t.teardown(() => socket.destroy());
  const tokens = ['Bearer of-alice', 'Bearer of-bob'].map((token) => ['authorization', token] as const);
  socket.write(frame(FRAME_TYPES.headers, END_HEADERS, 1, sessionHeaders(bridge.port, ...tokens)));
  await waitFor(() => refused.length === 1);
  t.deepEqual(refused, ['ERR_AUTH_TOKEN']);
});

test('lets in a caller with a token, who is named, until the token is worth nothing', async (t) => {
  const { door, authenticator } = createDoor();
  const bridge = await openGrpcBridge(t, { authenticator });
  const client = bridge.open({ metadata: { authorization: 'Bearer of-alice' } });
  client.send(initialize());
  t.like(await client.nextMessage(), { id: 0, result: { serverInfo: { name: 'fake' } } });
  bridge.clock.advance(ADMISSION_CHECK_MS);
  t.is(bridge.sessions.size, 1);
  door.isAliceWelcome = false;
  bridge.clock.advance(ADMISSION_CHECK_MS);
  t.is((await client.ended).code, status.UNAUTHENTICATED);
  await waitFor(() => bridge.sessions.size === 0);
});

test('metadata that is forwarded reaches the server with each message of the stream', async (t) => {
  const bridge = await openGrpcBridge(t, { forwardHeaders: ['x-tenant'] });
  const client = bridge.open({ metadata: { 'x-tenant': 'blue', 'x-other': 'no' } });
  client.send(initialize());
  await client.next();
  t.deepEqual(bridge.server.latest.calls[0]?.lane.headers, { 'x-tenant': 'blue' });
});

test('health checks need no token, name the service, and follow the state of the server', async (t) => {
  const bridge = await openGrpcBridge(t, { authenticator: ONLY_ALICE });
  t.is(await checkHealth(bridge.address), 'SERVING');
  t.is(await checkHealth(bridge.address, 'mcp.transport.v1.Mcp'), 'SERVING');
  const unknown = (await t.throwsAsync(checkHealth(bridge.address, 'other.Service'))) as { code?: number } | undefined;
  t.is(unknown?.code, status.NOT_FOUND);
  const watching = watchHealth(bridge.address, 'mcp.transport.v1.Mcp');
  const watchingUnknown = watchHealth(bridge.address, 'other.Service');
  t.teardown(() => watching.close());
  t.teardown(() => watchingUnknown.close());
  t.is(await watching.next(), 'SERVING');
  t.is(await watchingUnknown.next(), 'SERVICE_UNKNOWN');
  const error = new BridgeError('ERR_UPSTREAM_CONNECT', 'It is gone.');
  bridge.server.state = { state: 'failing', error, sinceMs: 0, dialing: 'refused' };
  bridge.clock.advance(1000);
  t.is(await watching.next(), 'NOT_SERVING');
  t.is(await checkHealth(bridge.address), 'NOT_SERVING');
  bridge.server.state = { state: 'ready' };
  bridge.clock.advance(1000);
  t.is(await watching.next(), 'SERVING');
  bridge.listener.stopAccepting();
  t.is(await watching.next(), 'NOT_SERVING');
});
