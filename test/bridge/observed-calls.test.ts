/** Whatever the eras of both sides, each call is seen to begin and to end once, however it ends. */

import test from 'ava';
import { createLegacyToModernDialer } from '../../src/eras/legacy-to-modern/dialer.ts';
import { createModernToLegacyDialer } from '../../src/eras/modern-to-legacy/dialer.ts';
import { BridgeError, SHUTTING_DOWN } from '../../src/errors.ts';
import { readRequestMetadata } from '../../src/mcp/classify/request-metadata.ts';
import type { Era } from '../../src/mcp/vocabulary/revisions.ts';
import { CallRegistry } from '../../src/relay/call-registry.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import type { CallOutcome } from '../../src/relay/observer.ts';
import type { ServerListener, UpstreamDialer } from '../../src/relay/ports.ts';
import type { Session } from '../../src/relay/sessions/session-entry.ts';
import { type SessionClient, SessionRegistry } from '../../src/relay/sessions/session-registry.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { FakeCaller } from '../relay/call-pair.ts';
import { createCalls, FakeObserver, ORIGIN } from '../support/calls.ts';
import { asUpstream } from '../support/dialers.ts';
import { createFakeDeps, type Dialed, FakeDialer, FakeLane, FakePeer } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { openInitializedSse, openStreamable } from '../support/legacy-clients.ts';

const CALL_OF_ADA = {
  transport: 'streamable-http',
  principal: 'ada',
  environment: undefined,
  headers: undefined,
} as const;
const SESSION_OF_ADA = { transport: 'http-sse', era: 'legacy', principal: 'ada', environment: undefined } as const;

const TIMEOUT_MS = 1000;
const LIMITS = { maxSessions: 1, sessionTimeoutMs: 60_000, requestTimeoutMs: TIMEOUT_MS };
const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited');
const LEFT = new BridgeError('ERR_SESSION_CLOSED', 'the client left');
const IDENTITY = { name: 'bridge', version: '0' };
const META = 'io.modelcontextprotocol/';
const ENVELOPE = {
  [`${META}protocolVersion`]: '2026-07-28',
  [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'client', version: '7' },
};

/** A server of one era that answers nothing but what comes before a call. */
class ScriptedServer {
  readonly dialer = new FakeDialer();
  #waiting: { readonly request: Frame; readonly listener: ServerListener } | undefined;

  constructor() {
    this.dialer.onDial = ({ link, listener }: Dialed) => {
      link.onSend = ({ frame }) => {
        const { id, method } = frame;
        if (method === 'initialize') listener.fromServer(serverFrame({ id, result: GREETING }));
        else if (method === 'server/discover') listener.fromServer(serverFrame({ id, result: DISCOVERY }));
        else if (method === 'tools/call') this.#waiting = { request: frame, listener };
      };
    };
  }

  get #call() {
    if (this.#waiting === undefined) throw new Error('the server was not called');
    return this.#waiting;
  }

  answers(answer: object): void {
    this.#call.listener.fromServer(serverFrame({ id: this.#call.request.id, ...answer }));
  }

  exits(): void {
    this.#call.listener.serverClosed(EXITED);
  }
}

const GREETING = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'old', version: '1' },
};
const DISCOVERY = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'public',
  _meta: { [`${META}serverInfo`]: { name: 'new', version: '1' } },
};

abstract class Scene {
  readonly server = new ScriptedServer();
  readonly observer = new FakeObserver();
  readonly deps = createFakeDeps();
  readonly calls = createCalls(this.deps.clock, { observer: this.observer });

  abstract call(): void;
  abstract cancels(): void;
  abstract leaves(): void;
  abstract drains(): void;
  abstract shutsDown(): void;

  timesOut(): void {
    this.deps.clock.advance(2 * TIMEOUT_MS);
  }
}

function dialerOf(client: Era, server: Era, { server: { dialer }, deps }: Scene): UpstreamDialer {
  if (client === server) return dialer;
  if (client === 'legacy') {
    return asUpstream(createLegacyToModernDialer({ dialer, deps, clientInfoFallback: IDENTITY }));
  }
  return asUpstream(
    createModernToLegacyDialer({ dialer, deps, handshakeTimeoutMs: 0, clientInfo: IDENTITY, sharing: 'by-name' }),
  );
}

/** A session of a legacy client, or the modern requests of a pipe. */
class SessionScene extends Scene {
  readonly #sessions: SessionRegistry;
  readonly #session: Session;
  readonly #params: object;

  constructor(clientEra: Era, serverEra: Era) {
    super();
    const { deps, calls } = this;
    const dialer = dialerOf(clientEra, serverEra, this);
    this.#sessions = new SessionRegistry({ dialers: forEveryCaller(dialer), deps, calls, ...LIMITS });
    const client: SessionClient =
      clientEra === 'legacy'
        ? SESSION_OF_ADA
        : {
            ...SESSION_OF_ADA,
            principal: undefined,
            transport: 'stdio',
            era: 'modern',
            context: { principal: 'ada', headers: undefined },
          };
    this.#session = this.#sessions.open(() => new FakePeer(), client);
    this.#params = clientEra === 'legacy' ? { name: 'echo' } : { name: 'echo', _meta: ENVELOPE };
    if (clientEra === 'modern') return;
    const clientInfo = { name: 'client', version: '7' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    this.#says({ id: 'init', method: 'initialize', params });
    this.#says({ method: 'notifications/initialized' });
  }

  #says(message: object): void {
    this.#session.relay.fromClient(clientFrame(message), new FakeLane());
  }

  call(): void {
    this.#says({ id: 'call', method: 'tools/call', params: this.#params });
  }

  cancels(): void {
    this.#says({ method: 'notifications/cancelled', params: { requestId: 'call' } });
  }

  leaves(): void {
    this.#session.relay.clientClosed(LEFT);
  }

  drains(): void {
    void this.#sessions.drain(0);
  }

  shutsDown(): void {
    this.#sessions.close(SHUTTING_DOWN);
  }
}

/** Modern requests over HTTP. */
class CallScene extends Scene {
  readonly #modernCalls: CallRegistry;
  #caller: FakeCaller | undefined;

  constructor(serverEra: Era) {
    super();
    const { deps, calls } = this;
    this.#modernCalls = new CallRegistry({
      dialers: forEveryCaller(dialerOf('modern', serverEra, this)),
      deps,
      calls,
      requestTimeoutMs: TIMEOUT_MS,
    });
  }

  call(): void {
    const frame = clientFrame({ id: 'call', method: 'tools/call', params: { name: 'echo', _meta: ENVELOPE } });
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) throw new Error(metadata.fault);
    try {
      this.#modernCalls.open({ ...CALL_OF_ADA, frame, metadata }, () => {
        this.#caller = new FakeCaller();
        return this.#caller;
      });
    } catch {
      // The endpoint answers with what is thrown.
    }
  }

  cancels(): void {
    this.#caller?.listener.clientLeft();
  }

  leaves(): void {
    this.#caller?.listener.clientLeft();
  }

  drains(): void {
    void this.#modernCalls.drain(0);
  }

  shutsDown(): void {
    this.#modernCalls.close(SHUTTING_DOWN);
  }
}

interface Kind {
  readonly title: string;
  readonly create: () => Scene;
  readonly client: object;
  /** How a call of a client that leaves has ended. */
  readonly left: CallOutcome;
  /** What is told of the clients that came and left. */
  readonly lasts: boolean;
}

const CLIENT = { principal: 'ada', name: 'client', version: '7' };
const LEGACY = { ...CLIENT, transport: 'http-sse', era: 'legacy', revision: '2025-11-25' };
const MODERN = { ...CLIENT, transport: 'streamable-http', era: 'modern', revision: '2026-07-28' };
const PIPE = { ...MODERN, transport: 'stdio', principal: undefined };

const failed = (code: 'ERR_SESSION_CLOSED' | 'ERR_UPSTREAM_EXITED' | 'ERR_UPSTREAM_TIMEOUT'): CallOutcome => ({
  kind: 'failed',
  code,
});
const session = { left: failed('ERR_SESSION_CLOSED'), lasts: true };
const request = { left: { kind: 'cancelled' }, lasts: false } as const;

const KINDS: readonly Kind[] = [
  ...(['legacy', 'modern'] as const).flatMap((server): Kind[] => [
    {
      title: `a session with a ${server} server`,
      create: () => new SessionScene('legacy', server),
      client: LEGACY,
      ...session,
    },
    {
      title: `the modern requests of a pipe with a ${server} server`,
      create: () => new SessionScene('modern', server),
      client: PIPE,
      ...session,
    },
    {
      title: `a modern request with a ${server} server`,
      create: () => new CallScene(server),
      client: MODERN,
      ...request,
    },
  ]),
];

for (const { title, create, client, left, lasts } of KINDS) {
  const ways: readonly (readonly [string, (scene: Scene) => void, CallOutcome])[] = [
    [
      'is answered',
      ({ server }) => server.answers({ result: { content: [], resultType: 'complete' } }),
      { kind: 'answered' },
    ],
    [
      'gets an error',
      ({ server }) => server.answers({ error: { code: -32602, message: 'no' } }),
      { kind: 'error', code: -32602 },
    ],
    ['is canceled', (scene) => scene.cancels(), { kind: 'cancelled' }],
    ['takes too long', (scene) => scene.timesOut(), failed('ERR_UPSTREAM_TIMEOUT')],
    ['loses its server', ({ server }) => server.exits(), failed('ERR_UPSTREAM_EXITED')],
    ['loses its client', (scene) => scene.leaves(), left],
    ['is open when the bridge ends', (scene) => scene.shutsDown(), failed('ERR_SESSION_CLOSED')],
  ];
  for (const [way, end, outcome] of ways) {
    test(`${title}: a call that ${way} is seen to begin and to end once`, (t) => {
      const scene = create();
      scene.call();
      t.deepEqual(scene.observer.outcomes, [undefined]);
      scene.deps.clock.advance(5);
      end(scene);
      t.deepEqual(scene.observer.outcomes, [outcome]);
      for (const [, again] of ways) again(scene);
      const { calls, clients } = scene.observer;
      t.true(
        calls.every(({ endings }) => endings.length === 1),
        JSON.stringify(calls),
      );
      t.like(calls.at(-1), { client, method: 'tools/call', tool: 'echo' });
      t.true((calls.at(-1)?.endings[0]?.durationMs ?? 0) >= 5);
      t.is(scene.calls.size, 0);
      t.deepEqual(
        clients.map((seen) => [seen.left.length, seen.client.name, seen.client.revision]),
        lasts ? [[1, 'client', 'revision' in client ? client.revision : undefined]] : [],
      );
    });
  }

  test(`${title}: a call that is refused is seen to begin and to end once`, (t) => {
    const scene = create();
    scene.drains();
    scene.call();
    scene.shutsDown();
    t.deepEqual(scene.observer.outcomes, [failed('ERR_SESSION_CLOSED')]);
    t.true(scene.observer.calls.every(({ endings }) => endings.length === 1));
  });
}

test('a modern call whose server cannot be reached is seen to fail', (t) => {
  const scene = new CallScene('modern');
  scene.server.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  scene.call();
  t.deepEqual(scene.observer.outcomes, [{ kind: 'failed', code: 'ERR_UPSTREAM_SPAWN' }]);
});

test('a client that gets no session is seen to be refused', (t) => {
  const observer = new FakeObserver();
  const deps = createFakeDeps();
  const dialer = new FakeDialer();
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  const calls = createCalls(deps.clock, { observer });
  const sessions = new SessionRegistry({ dialers: forEveryCaller(dialer), deps, calls, ...LIMITS });
  t.throws(() => sessions.open(() => new FakePeer(), SESSION_OF_ADA));
  t.deepEqual(observer.refusals, [
    {
      client: { transport: 'http-sse', principal: 'ada', server: ORIGIN.server },
      reason: 'ERR_UPSTREAM_SPAWN',
    },
  ]);
  t.deepEqual(observer.clients, []);
});

test('the transport that a client came in by is seen', async (t) => {
  const observer = new FakeObserver();
  const harness = await startHttpHarness(t, { observer });
  await openStreamable(harness);
  await openInitializedSse(harness);
  harness.server.scripts.set('tools/list', (frame, connection) => connection.answer(frame, { tools: [] }));
  await postModern(harness, modern(1, 'tools/list'));
  t.deepEqual(
    observer.calls.map(({ client, method }) => [method, client.transport, client.era, client.server]),
    [
      ['initialize', 'streamable-http', 'legacy', ORIGIN.server],
      ['initialize', 'http-sse', 'legacy', ORIGIN.server],
      ['tools/list', 'streamable-http', 'modern', ORIGIN.server],
    ],
  );
});
