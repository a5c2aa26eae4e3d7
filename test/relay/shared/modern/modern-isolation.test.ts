import test from 'ava';
import fc from 'fast-check';
import { rpcErrorOf } from '../../../../src/mcp/vocabulary/rpc-errors.ts';
import { errorFrame } from '../../../../src/wire/write-message.ts';
import type { FakeCaller } from '../../call-pair.ts';
import { EXITED } from '../legacy/shared-bridge.ts';
import { META, ModernBridge, type ModernCaller, ModernClient, SUBSCRIPTION_ID } from './modern-bridge.ts';

/**
 * Ids and tokens as clients write them. All clients use the same few, so everything collides; spellings that mean the
 * same id are left out, one client cannot have both open.
 */
const TOKENS = ['0', '1', '-7', '"1"', '"\\u0030"', '"é\\u0041\\/"', '""', '"\\ud83d\\ude00"', '9007199254740991'];

interface OpenCall {
  readonly client: number;
  readonly id: string;
  readonly token: string | undefined;
  readonly wantsLogs: boolean;
  /** Changes with the child for a subscription. */
  upstreamId: number;
  /** Undefined: it is no subscription. */
  readonly subscription: { isAcknowledged: boolean } | undefined;
  /** The client of a request that came alone. */
  readonly caller: FakeCaller | undefined;
}

/** Clients that share a modern server, and what each of them must have heard, to the byte. */
class World {
  readonly bridge = new ModernBridge();
  /** Every second one is on a pipe; the requests of the others come alone. */
  readonly clients: (ModernClient | ModernCaller)[] = [];
  readonly calls: OpenCall[] = [];
  /** Ids the server knew of that are over. */
  readonly over: number[] = [];
  readonly present: Set<number>;
  readonly expected: string[][];
  /** Calls the server may still talk about: of whom, whether it asked for logs, and until when. */
  withdrawn: { readonly call: OpenCall; readonly untilMs: number }[] = [];
  hasSpoken = false;
  /** The child has ended, and nobody wanted another. */
  isIdle = false;
  #count = 0;

  constructor(clients: number) {
    for (let n = 0; n < clients; n += 1)
      this.clients.push(n % 2 === 0 ? this.bridge.connect() : this.bridge.connectAlone());
    this.expected = this.clients.map(() => []);
    this.present = new Set(this.clients.keys());
  }

  get hasChild(): boolean {
    return this.bridge.dialer.dialed.length > 0;
  }

  next(): number {
    this.#count += 1;
    return this.#count;
  }

  client(index: number): ModernClient | ModernCaller {
    return this.clients[index] as ModernClient | ModernCaller;
  }

  says(text: string): void {
    this.hasSpoken = !this.isIdle;
    this.bridge.says(text);
  }

  expect({ client }: OpenCall, text: string): void {
    this.expected[client]?.push(text);
  }

  call(
    client: number,
    id: string,
    wishes: { token?: string | undefined; wantsLogs?: boolean; listens?: boolean },
  ): void {
    if (!this.present.has(client)) return;
    const { bridge } = this;
    const { token, wantsLogs = false, listens = false } = wishes;
    const n = this.next();
    const level = wantsLogs ? `"${META}logLevel":"info",` : '';
    const text = (shownId: string | number, shownToken: string | number | undefined) => {
      const progress = shownToken === undefined ? '' : `"progressToken":${shownToken},`;
      const params = `{"n":${n}.0,"notifications":{"toolsListChanged":true},"_meta":{${level}${progress}"x":1}}`;
      const method = listens ? 'subscriptions/listen' : 'tools/call';
      return `{"jsonrpc":"2.0","method":"${method}","id":${shownId},"params":${params}}`;
    };
    if (this.hasChild) bridge.link.take();
    const asks = this.client(client);
    const isTaken = asks instanceof ModernClient && this.calls.some((call) => call.client === client && call.id === id);
    const caller = asks.says(text(id, token));
    const [sent] = bridge.link.take();
    if (isTaken) {
      if (sent !== undefined) throw new Error('an id that is in use was forwarded');
      asks.peer.sent.pop();
      return;
    }
    this.isIdle = false;
    const upstreamId = sent?.frame.id;
    if (typeof upstreamId !== 'number') throw new Error('the call has no number of the bridge');
    this.#expectFresh(upstreamId);
    if (sent?.frame.bytes.toString() !== text(upstreamId, token && upstreamId))
      throw new Error(`sent ${sent?.frame.bytes}`);
    const subscription = listens ? { isAcknowledged: false } : undefined;
    this.calls.push({
      ...{ client, id, token, wantsLogs: wantsLogs && !listens, upstreamId, subscription },
      caller: 'bytes' in caller ? undefined : caller,
    });
  }

  #expectFresh(upstreamId: number): void {
    if (this.over.includes(upstreamId) || this.calls.some((call) => call.upstreamId === upstreamId)) {
      throw new Error('an id of the bridge is used twice');
    }
  }

  answer(call: OpenCall | undefined, isError: boolean): void {
    if (call === undefined) return;
    this.#end(call);
    const n = this.next();
    const text = (id: string | number) =>
      isError
        ? `{"jsonrpc":"2.0","id":${id},"error":{"code":${n},"message":"m"}}`
        : `{"jsonrpc":"2.0","id":${id},"result":{"n":${n}.0,"_meta":{"${SUBSCRIPTION_ID}":${call.subscription ? id : 'null'}}}}`;
    this.says(text(call.upstreamId));
    this.expect(call, text(call.id));
  }

  #end(call: OpenCall): void {
    this.calls.splice(this.calls.indexOf(call), 1);
    this.over.push(call.upstreamId);
  }

  progress(call: OpenCall | undefined): void {
    if (call === undefined) return;
    const n = this.next();
    const text = (token: string | number) =>
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${n}.0}}`;
    this.says(text(call.upstreamId));
    if (call.token !== undefined) this.expect(call, text(call.token));
  }

  acknowledge(call: OpenCall | undefined): void {
    if (call === undefined) return;
    const text = (method: string, id: string | number, params = '') =>
      `{"jsonrpc":"2.0","method":"notifications/${method}","params":{"_meta":{"${SUBSCRIPTION_ID}":${id}}${params}}}`;
    const granted = ',"notifications":{"toolsListChanged":true}';
    this.says(text('subscriptions/acknowledged', call.upstreamId, granted));
    if (call.subscription === undefined) return;
    if (call.subscription.isAcknowledged) this.expect(call, text('tools/list_changed', call.id));
    else this.expect(call, text('subscriptions/acknowledged', call.id, granted));
    call.subscription.isAcknowledged = true;
  }

  change(call: OpenCall | undefined): void {
    if (call === undefined) return;
    const n = this.next();
    const text = (id: string | number) =>
      `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"n":${n}.0,"_meta":{"${SUBSCRIPTION_ID}":${id}}}}`;
    this.says(text(call.upstreamId));
    if (call.subscription !== undefined) this.expect(call, text(call.id));
  }

  tearDown(call: OpenCall | undefined): void {
    if (call === undefined) return;
    this.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${call.upstreamId}}}`);
    if (call.subscription === undefined) return;
    this.#end(call);
    const result = `{"resultType":"complete","_meta":{"${SUBSCRIPTION_ID}":${call.id}}}`;
    this.expect(call, `{"jsonrpc":"2.0","id":${call.id},"result":${result}}`);
  }

  /** What names no call. */
  unnamed(kind: 'log' | 'vendor' | 'error'): void {
    if (!this.hasChild) return;
    const n = this.next();
    const [text, mayBe]: readonly [string, (call: OpenCall) => boolean] = {
      log: [
        `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}`,
        (call: OpenCall) => call.wantsLogs,
      ] as const,
      vendor: [
        `{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":${n}.0}}`,
        (call: OpenCall) => call.subscription === undefined,
      ] as const,
      error: [
        `{"jsonrpc":"2.0","error":{"code":${n},"message":"m"}}`,
        (call: OpenCall) => call.subscription?.isAcknowledged !== true,
      ] as const,
    }[kind];
    this.says(text);
    const candidates = this.calls.filter(mayBe);
    const [only] = candidates;
    if (only === undefined || candidates.length > 1) return;
    const nowMs = this.bridge.clock.now();
    const isRivalled = this.withdrawn.some(
      ({ call, untilMs }) =>
        untilMs > nowMs && (call.client !== only.client || call.caller !== undefined) && mayBe(call),
    );
    if (isRivalled) return;
    if (kind === 'error') this.#end(only);
    this.expect(only, kind === 'error' ? text.replace('{"jsonrpc"', `{"id":${only.id},"jsonrpc"`) : text);
  }

  /** Of something that is over, or never was: nobody hears of it. */
  sayStale(id: number | string): void {
    if (!this.hasChild) return;
    // Progress of a call that is open is its own, also with its token as a text.
    const isOpen = this.calls.some(({ upstreamId }) => upstreamId === Number(JSON.parse(`${id}`)));
    if (isOpen) return;
    this.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${id},"progress":1}}`);
    this.says(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    this.says(`{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"${SUBSCRIPTION_ID}":${id}}}}`);
    this.says(`{"jsonrpc":"2.0","id":${id},"method":"sampling/createMessage","params":{}}`);
  }

  cancel(call: OpenCall | undefined): void {
    if (call === undefined) return;
    this.bridge.link.take();
    const text = (id: string | number) =>
      call.caller === undefined
        ? `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":${id}}}`
        : `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"the client left"}}`;
    if (call.caller === undefined) this.client(call.client).says(text(call.id));
    else call.caller.listener.clientLeft();
    const [sent, ...others] = this.bridge.link.take();
    if (sent?.frame.bytes.toString() !== text(call.upstreamId) || others.length > 0) throw new Error('not canceled');
    this.#withdraw(call);
  }

  #withdraw(call: OpenCall): void {
    this.#end(call);
    this.withdrawn.push({ call, untilMs: this.bridge.clock.now() + 10_000 });
  }

  leave(client: number): void {
    if (!this.present.delete(client)) return;
    if (this.hasChild) this.bridge.link.take();
    this.client(client).leaves();
    // What its relay tells it at the end is of no interest here.
    this.expected[client] = [];
    this.client(client).heardTexts();
    const own = this.calls.filter((one) => one.client === client);
    if (this.hasChild && this.bridge.link.take().length !== own.length) throw new Error('not all were withdrawn');
    for (const call of own) this.#withdraw(call);
  }

  restart(): void {
    if (!this.hasChild || this.isIdle) return;
    const { bridge, hasSpoken } = this;
    const isKept = ({ subscription }: OpenCall) =>
      subscription !== undefined && (hasSpoken || subscription.isAcknowledged);
    const ended = this.calls.filter((call) => !isKept(call));
    bridge.exits();
    for (const call of ended) {
      this.#end(call);
      this.expect(call, errorFrame(Buffer.from(call.id), rpcErrorOf(EXITED)).bytes.toString());
    }
    this.withdrawn = [];
    this.hasSpoken = false;
    bridge.clock.advance(60_000);
    const isWanted = [...this.present].some((client) => this.client(client) instanceof ModernClient);
    this.isIdle = this.calls.length === 0 && !isWanted;
    const sent = bridge.link.take();
    if (sent.length !== this.calls.length) throw new Error('not every subscription was opened again, or another was');
    for (const [index, call] of this.calls.entries()) {
      const upstreamId = sent[index]?.frame.id as number;
      this.#expectFresh(upstreamId);
      this.over.push(call.upstreamId);
      call.upstreamId = upstreamId;
    }
  }

  /** Compares what was heard since the last look. */
  check(): void {
    for (const [index, client] of this.clients.entries()) {
      const heard = client.heardTexts();
      const expected = this.expected[index]?.splice(0) ?? [];
      if (heard.join('\n') !== expected.join('\n')) {
        throw new Error(`client ${index} heard\n${heard.join('\n')}\ninstead of\n${expected.join('\n')}`);
      }
    }
  }
}

const CLIENTS = 4;
const index = fc.nat({ max: CLIENTS - 1 });
const token = fc.constantFrom(...TOKENS);
/** Which of those that are there; taken modulo their number. */
const pick = fc.nat({ max: 50 });
const picking = <Kind extends string>(kind: Kind) => fc.record({ kind: fc.constant(kind), pick });

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('call' as const),
      index,
      token,
      progress: fc.option(token),
      wantsLogs: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('listen' as const), index, token }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('answer' as const), pick, isError: fc.boolean() }) },
  { weight: 4, arbitrary: picking('progress') },
  { weight: 5, arbitrary: picking('acknowledge') },
  { weight: 4, arbitrary: picking('change') },
  { weight: 1, arbitrary: picking('tear down') },
  { weight: 3, arbitrary: picking('cancel') },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('stale' as const), pick, token }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('log' as const, 'vendor' as const, 'error' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

function take(world: World, next: Step): void {
  const picked = <Item>(items: readonly Item[], n: number): Item | undefined => items[n % Math.max(1, items.length)];
  switch (next.kind) {
    case 'call':
      return world.call(next.index, next.token, { token: next.progress ?? undefined, wantsLogs: next.wantsLogs });
    case 'listen':
      return world.call(next.index, next.token, { listens: true });
    case 'answer':
      return world.answer(picked(world.calls, next.pick), next.isError);
    case 'progress':
      return world.progress(picked(world.calls, next.pick));
    case 'acknowledge':
      return world.acknowledge(picked(world.calls, next.pick));
    case 'change':
      return world.change(picked(world.calls, next.pick));
    case 'tear down':
      return world.tearDown(picked(world.calls, next.pick));
    case 'cancel':
      return world.cancel(picked(world.calls, next.pick));
    case 'stale':
      world.sayStale(picked(world.over, next.pick) ?? 1e9);
      return next.token.startsWith('"') ? world.sayStale(next.token) : undefined;
    case 'log':
    case 'vendor':
    case 'error':
      return world.unnamed(next.kind);
    case 'wait':
      return world.bridge.clock.advance(10_000);
    case 'leave':
      return world.leave(next.index);
    case 'restart':
      return world.restart();
  }
}

test('whatever several clients and their modern server do, each client hears exactly what is its own, to the byte', (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
      const world = new World(CLIENTS);
      for (const next of steps) {
        take(world, next);
        world.check();
      }
    }),
    { numRuns: 400 },
  );
  t.pass();
});

test('the same few steps, played by hand: same ids, same tokens, answers in another order', (t) => {
  const world = new World(2);
  for (const client of [0, 1]) for (const id of TOKENS) world.call(client, id, { token: id, listens: client === 1 });
  t.is(world.calls.length, 2 * TOKENS.length);
  for (const call of [...world.calls].reverse()) {
    world.progress(call);
    world.acknowledge(call);
    world.change(call);
    world.answer(call, false);
  }
  t.notThrows(() => world.check());
});
