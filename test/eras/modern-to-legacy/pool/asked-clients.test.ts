/** Who is asked, whatever clients and server do in whatever order: the invariants of `attributeQuestion` in a pool. */
import test from 'ava';
import fc from 'fast-check';
import type { Attribution } from '../../../../src/eras/modern-to-legacy/pool/sole-owner.ts';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import type { JsonRpcId } from '../../../../src/wire/frame.ts';
import { type Message, ModernBridge, type ModernConnection, type ModernRequest } from '../modern-bridge.ts';

const CALLERS = ['ada', 'bob'] as const;
/** Clients on connections of their own, of each caller. */
const CONNECTIONS = 2;
const ANSWER = { action: 'accept', content: {} };

interface Client {
  readonly caller: string;
  /** Undefined: a request over HTTP, which nothing joins with another. */
  readonly connection: ModernConnection | undefined;
}

interface Call {
  readonly client: Client;
  /** The one that waits for the outcome now. */
  request: ModernRequest;
  state: 'open' | 'abandoned' | 'over';
  /** Where the server has it, and under which id; undefined: it waits for a session. */
  at: { readonly session: number; readonly id: JsonRpcId } | undefined;
  abandonedAtMs: number;
  /** Ids of what the server has asked in it and not heard yet. */
  readonly open: Set<JsonRpcId>;
}

/** What the server asks names the call that it is truly asked in, which the bridge does not look at. */
const question = (id: string, name: string) => ({
  id,
  method: 'elicitation/create',
  params: { message: name, requestedSchema: { type: 'object' } },
});

class World {
  readonly #attribution: Attribution;
  readonly bridge: ModernBridge;
  readonly clients: readonly Client[];
  readonly calls = new Map<string, Call>();
  readonly #asked = new Set<string>();
  #count = 0;

  constructor(attribution: Attribution) {
    this.#attribution = attribution;
    this.bridge = new ModernBridge({ attribution });
    this.clients = CALLERS.flatMap((caller) => [
      { caller, connection: undefined },
      ...Array.from({ length: CONNECTIONS }, () => ({ caller, connection: this.bridge.connect(caller) })),
    ]);
  }

  #next(): number {
    this.#count += 1;
    return this.#count;
  }

  call(client: Client): void {
    const name = `call-${this.#next()}`;
    this.calls.set(name, {
      client,
      request: this.#request(client, name),
      state: 'open',
      at: undefined,
      abandonedAtMs: 0,
      open: new Set(),
    });
  }

  #request({ caller, connection }: Client, name: string, retry = {}): ModernRequest {
    return this.bridge.call({ name, ...retry }, { principal: caller, connection, id: this.#next() });
  }

  cancel(call: Call): void {
    if (call.client.connection === undefined) call.request.leaves();
    else call.request.cancels();
    call.state = call.at === undefined ? 'over' : 'abandoned';
    call.abandonedAtMs = this.bridge.clock.now();
  }

  /** A server that answers a call wants to know nothing more in it. */
  answer(call: Call): void {
    const { at, open } = call;
    if (at === undefined) return;
    for (const requestId of open) {
      this.bridge.says({ method: 'notifications/cancelled', params: { requestId } }, at.session);
    }
    call.state = 'over';
    this.bridge.says({ id: at.id, result: { content: [] } }, at.session);
  }

  exit(session: number): void {
    for (const call of this.calls.values()) if (call.at?.session === session) call.state = 'over';
    this.bridge.exits(session);
  }

  ask(name: string, { at, client, state, open: asked }: Call): void {
    if (at === undefined) return;
    const here = [...this.calls.values()].filter((call) => call.at?.session === at.session);
    const open = here.filter((call) => call.state === 'open');
    const abandoned = here.filter((call) => this.#isAbandoned(call));
    const isOwn = (call: Call): boolean => client.connection !== undefined && call.client === client;
    if (this.#attribution === 'lease') {
      if (open.length > 1) throw new Error('two calls that may be asked are in one session');
      if (state === 'open' && !abandoned.every(isOwn)) throw new Error('a call is where another client abandoned one');
    }
    const isCertain = state === 'open' && open.length === 1 && abandoned.every(isOwn);
    this.#asked.clear();
    const id = `q${this.#next()}`;
    asked.add(id);
    this.bridge.says(question(id, name), at.session);
    this.bridge.collect();
    this.deliver();
    if (isCertain && !this.#asked.has(name)) throw new Error('the only open call was not asked');
    if (state === 'open' && this.#attribution === 'lease' && !isCertain)
      throw new Error('an open call cannot be asked');
  }

  #isAbandoned({ state, abandonedAtMs }: Call): boolean {
    const isForgotten = this.#attribution === 'none' && this.bridge.clock.now() - abandonedAtMs >= ABANDONED_MS;
    return state === 'abandoned' && !isForgotten;
  }

  /** The server reads. */
  arrive(): void {
    for (const session of this.bridge.dialer.dialed.keys()) {
      for (const { id, method, params } of this.bridge.heard(session)) {
        if (id === undefined) continue;
        const call = method === 'tools/call' ? this.calls.get(params.name) : undefined;
        if (call !== undefined) call.at = { session, id };
        if (method === undefined) for (const { open } of this.calls.values()) open.delete(id);
      }
    }
  }

  /** The clients read, and answer what they are asked. */
  deliver(): void {
    for (const [name, call] of this.calls) {
      const { request } = call;
      for (const { result, error } of request.told()) {
        if (call.state === 'abandoned') throw new Error('a call that was canceled was answered');
        if (error !== undefined || result?.resultType === 'complete') call.state = 'over';
        else this.#answerQuestions(name, call, result);
      }
    }
  }

  #answerQuestions(name: string, call: Call, { inputRequests, requestState }: Message['result']): void {
    const inputResponses: Record<string, object> = {};
    for (const [key, { params }] of Object.entries<{ params: { message: string } }>(inputRequests)) {
      this.#check(params.message, call);
      inputResponses[key] = ANSWER;
    }
    call.request = this.#request(call.client, name, { requestState, inputResponses });
  }

  /** A question may have waited, and the call that it is of may be abandoned by now. */
  #check(asked: string, call: Call): void {
    this.#asked.add(asked);
    const cause = this.calls.get(asked);
    if (cause === undefined) throw new Error('nobody has asked this');
    if (cause.client.caller !== call.client.caller) throw new Error('a question has reached another caller');
    const isForgotten = cause.state === 'abandoned' && !this.#isAbandoned(cause);
    const isOwn = cause === call || (cause.client === call.client && call.client.connection !== undefined);
    if (!isOwn && !isForgotten) throw new Error('a question has reached another client');
    if (cause !== call && cause.state === 'open') throw new Error('a question has reached another open call');
  }
}

const pick = fc.nat({ max: 50 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('call' as const), pick }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('ask' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('answer' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass time' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('exit' as const), pick }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

function take(world: World, { kind, pick: n }: Step): void {
  const picked = <Item>(items: readonly Item[]): Item | undefined => items[n % Math.max(1, items.length)];
  const calls = [...world.calls].filter(([, { state }]) => state !== 'over');
  const [name, call] = picked(calls) ?? [];
  switch (kind) {
    case 'call':
      return world.call(picked(world.clients) as Client);
    case 'ask':
      return name !== undefined && call !== undefined ? world.ask(name, call) : undefined;
    case 'cancel':
      return call?.state === 'open' ? world.cancel(call) : undefined;
    case 'answer':
      return call === undefined ? undefined : world.answer(call);
    case 'pass time':
      return void world.bridge.clock.advance(n * 200);
    case 'exit':
      return world.bridge.dialer.dialed.length > 0 ? world.exit(n % world.bridge.dialer.dialed.length) : undefined;
  }
}

for (const attribution of ['lease', 'stream', 'none'] as const) {
  test(`attribution ${attribution}: a question reaches the client whose call it is of, and an only open call hears its own`, (t) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
        const world = new World(attribution);
        for (const next of steps) {
          take(world, next);
          world.arrive();
          world.deliver();
        }
      }),
      { numRuns: 200 },
    );
    t.pass();
  });
}
