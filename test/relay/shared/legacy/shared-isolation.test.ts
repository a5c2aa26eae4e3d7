import test from 'ava';
import fc from 'fast-check';
import { rpcErrorOf } from '../../../../src/mcp/vocabulary/rpc-errors.ts';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import { errorFrame } from '../../../../src/wire/write-message.ts';
import { EXITED, type Message, SERVER_RESULT, SharedBridge, type SharedClient } from './shared-bridge.ts';

/**
 * Ids and tokens as clients write them. All clients use the same few, so everything collides; spellings that mean the
 * same id are left out, one client cannot have both open.
 */
const TOKENS = ['0', '1', '-7', '"1"', '"\\u0030"', '"é\\u0041\\/"', '""', '"\\ud83d\\ude00"', '9007199254740991'];

interface OpenCall {
  readonly client: number;
  readonly id: string;
  readonly token: string | undefined;
  readonly upstreamId: number;
}

interface AbandonedCall {
  readonly client: number;
  readonly upstreamId: number;
  readonly sinceMs: number;
}

interface OpenQuestion {
  readonly client: number;
  /** As the client knows it. */
  readonly id: number;
  readonly serverId: string;
}

/** Clients that share a server, and what each of them must have heard, to the byte. */
class World {
  readonly bridge = new SharedBridge();
  readonly clients: SharedClient[] = [];
  readonly calls: OpenCall[] = [];
  /** Ids the server knew of that are over. */
  readonly over: number[] = [];
  readonly abandoned: AbandonedCall[] = [];
  readonly questions: OpenQuestion[] = [];
  readonly present: Set<number>;
  readonly expected: string[][];
  #count = 0;

  constructor(clients: number) {
    for (let n = 0; n < clients; n += 1) this.clients.push(this.bridge.join({ capabilities: { sampling: {} } }));
    this.expected = this.clients.map(() => []);
    this.present = new Set(this.clients.keys());
  }

  /** Makes each message another one. */
  next(): number {
    this.#count += 1;
    return this.#count;
  }

  client(index: number): SharedClient {
    return this.clients[index] as SharedClient;
  }

  expect(client: number, text: string): void {
    this.expected[client]?.push(text);
  }

  call(client: number, id: string, token: string | undefined): void {
    if (!this.present.has(client)) return;
    const { bridge } = this;
    const n = this.next();
    const meta = token === undefined ? '' : `,"_meta":{"progressToken":${token}}`;
    const text = (shownId: string | number, shownMeta: string) =>
      `{"jsonrpc":"2.0","method":"tools/call","id":${shownId},"params":{"n":${n}.0${shownMeta}}}`;
    bridge.link.take();
    this.client(client).says(text(id, meta));
    const isTaken = this.calls.some((call) => call.client === client && call.id === id);
    const [sent] = bridge.link.take();
    if (isTaken) {
      if (sent !== undefined) throw new Error('an id that is in use was forwarded');
      this.client(client).peer.sent.pop();
      return;
    }
    const upstreamId = sent?.frame.id;
    if (typeof upstreamId !== 'number') throw new Error('the call has no number of the bridge');
    if (this.over.includes(upstreamId) || this.calls.some((call) => call.upstreamId === upstreamId)) {
      throw new Error('an id of the bridge is used twice');
    }
    const shownMeta = token === undefined ? '' : `,"_meta":{"progressToken":${upstreamId}}`;
    if (sent?.frame.bytes.toString() !== text(upstreamId, shownMeta)) throw new Error(`sent ${sent?.frame.bytes}`);
    this.calls.push({ client, id, token, upstreamId });
  }

  answer(call: OpenCall | undefined, isError: boolean): void {
    if (call === undefined) return;
    this.#end(call);
    const n = this.next();
    const outcome = isError ? `"error":{"code":${n},"message":"m"}` : `"result":{"n":${n}.0}`;
    this.bridge.says(`{"jsonrpc":"2.0","id":${call.upstreamId},${outcome}}`);
    this.expect(call.client, `{"jsonrpc":"2.0","id":${call.id},${outcome}}`);
  }

  #end(call: OpenCall): void {
    this.calls.splice(this.calls.indexOf(call), 1);
    this.over.push(call.upstreamId);
  }

  progress(call: OpenCall | undefined): void {
    if (call === undefined) return;
    const text = (token: string | number, n: number) =>
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${n}.0}}`;
    const n = this.next();
    this.bridge.says(text(call.upstreamId, n));
    if (call.token !== undefined) this.expect(call.client, text(call.token, n));
  }

  /** Of something that is over, or never was: nobody hears of it. */
  sayStale(id: number | string): void {
    // Progress of a call that is open is its own, also with its token as a text.
    if (typeof id === 'string' && this.calls.some(({ upstreamId }) => upstreamId === Number(JSON.parse(id)))) return;
    this.bridge.says(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${id},"progress":1}}`,
    );
    if (this.calls.some(({ upstreamId }) => upstreamId === id)) return;
    this.bridge.says(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    this.#noLongerAbandoned(({ upstreamId }) => upstreamId === id);
  }

  cancel(call: OpenCall | undefined): void {
    if (call === undefined) return;
    this.bridge.link.take();
    const text = (id: string | number) =>
      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":${id}}}`;
    this.client(call.client).says(text(call.id));
    const [sent, ...others] = this.bridge.link.take();
    if (sent?.frame.bytes.toString() !== text(call.upstreamId) || others.length > 0) throw new Error('not canceled');
    this.#abandon(call);
  }

  #abandon(call: OpenCall): void {
    this.#end(call);
    this.abandoned.push({ client: call.client, upstreamId: call.upstreamId, sinceMs: this.bridge.clock.now() });
  }

  #noLongerAbandoned(isMeant: (call: AbandonedCall) => boolean): void {
    for (const call of this.abandoned.filter(isMeant)) this.abandoned.splice(this.abandoned.indexOf(call), 1);
  }

  passTime(ms: number): void {
    this.bridge.clock.advance(ms);
    const nowMs = this.bridge.clock.now();
    this.#noLongerAbandoned(({ sinceMs }) => nowMs - sinceMs >= ABANDONED_MS);
  }

  /** The client's last connection closes, or it opens one again; its session stays. */
  reconnect(client: number): void {
    const { lane } = this.client(client);
    lane.lostAtMs = lane.lostAtMs === undefined ? this.bridge.clock.now() : undefined;
  }

  #isLost(client: number): boolean {
    const { lostAtMs } = this.client(client).lane;
    return lostAtMs !== undefined && this.bridge.clock.now() - lostAtMs >= ABANDONED_MS;
  }

  /** Whom the server may ask now; undefined: that is not certain. */
  #asker(): number | undefined {
    const open = this.calls.map(({ client }) => client);
    const likely = [...open.filter((client) => !this.#isLost(client)), ...this.abandoned.map(({ client }) => client)];
    const [clients] = [new Set(likely), new Set(open), this.present].filter(({ size }) => size > 0);
    const [client] = clients ?? [];
    return clients?.size === 1 && client !== undefined && this.present.has(client) ? client : undefined;
  }

  ask(serverId: string): void {
    if (this.questions.some((question) => question.serverId === serverId)) return;
    const { bridge } = this;
    bridge.link.take();
    const text = (id: string | number, n: number) =>
      `{"jsonrpc":"2.0","id":${id},"method":"sampling/createMessage","params":{"n":${n}.0}}`;
    const n = this.next();
    const candidate = this.#asker();
    bridge.says(text(serverId, n));
    if (candidate === undefined) {
      const [refusal] = bridge.link.take();
      if (refusal?.frame.kind !== 'error' || refusal.frame.id !== JSON.parse(serverId)) throw new Error('not refused');
      return;
    }
    const id = this.client(candidate).peer.sent.at(-1)?.frame.id;
    if (typeof id !== 'number') throw new Error('the question has no number of the bridge');
    this.expect(candidate, text(id, n));
    this.questions.push({ client: candidate, id, serverId });
  }

  /** Everybody answers it; only the one who was asked is heard. */
  answerQuestion(question: OpenQuestion | undefined): void {
    if (question === undefined) return;
    this.bridge.link.take();
    for (const client of this.present) {
      const ownIds = this.questions.filter((other) => other.client === client).map(({ id }) => id);
      if (client === question.client || ownIds.includes(question.id)) continue;
      this.client(client).says(`{"jsonrpc":"2.0","id":${question.id},"result":{"of":"somebody else"}}`);
    }
    this.client(question.client).says(`{"jsonrpc":"2.0","id":${question.id},"result":{"n":1.0}}`);
    this.questions.splice(this.questions.indexOf(question), 1);
    const sent = this.bridge.link.take().map(({ frame }) => frame.bytes.toString());
    const token = JSON.stringify(JSON.parse(question.serverId));
    if (sent.join() !== `{"jsonrpc":"2.0","id":${token},"result":{"n":1.0}}`)
      throw new Error(`answered ${sent.join()}`);
  }

  listChanged(): void {
    const text = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
    this.bridge.says(text);
    for (const client of this.present) this.expect(client, text);
  }

  leave(client: number): void {
    if (!this.present.delete(client)) return;
    this.client(client).leaves();
    // What its relay tells it at the end is of no interest here.
    this.expected[client] = [];
    this.client(client).peer.take();
    for (const call of this.calls.filter((one) => one.client === client)) this.#abandon(call);
    for (const question of this.questions.filter((one) => one.client === client)) {
      this.questions.splice(this.questions.indexOf(question), 1);
    }
  }

  restart(): void {
    if (this.present.size === 0) return;
    const ended = this.calls.splice(0);
    this.abandoned.splice(0);
    this.bridge.exits();
    for (const { client, id, upstreamId } of ended) {
      this.over.push(upstreamId);
      this.expect(client, errorFrame(Buffer.from(id), rpcErrorOf(EXITED)).bytes.toString());
    }
    for (const { client, id } of this.questions.splice(0)) {
      const params = `{"requestId":${id},"reason":"the server ended"}`;
      this.expect(client, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`);
    }
    this.bridge.clock.advance(250);
    this.bridge.answerHandshake(SERVER_RESULT);
    for (const list of ['tools', 'resources']) {
      const text = `{"jsonrpc":"2.0","method":"notifications/${list}/list_changed"}`;
      for (const client of this.present) this.expect(client, text);
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

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('call' as const), index, token, progress: fc.option(token) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('answer' as const), pick, isError: fc.boolean() }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('progress' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('stale' as const), pick, token }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('ask' as const), token }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer question' as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass time' as const), ms: fc.integer({ min: 1, max: ABANDONED_MS }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reconnect' as const), index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('list changed' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

function take(world: World, next: Step): void {
  const picked = <Item>(items: readonly Item[], n: number): Item | undefined => items[n % Math.max(1, items.length)];
  switch (next.kind) {
    case 'call':
      return world.call(next.index, next.token, next.progress ?? undefined);
    case 'answer':
      return world.answer(picked(world.calls, next.pick), next.isError);
    case 'progress':
      return world.progress(picked(world.calls, next.pick));
    case 'cancel':
      return world.cancel(picked(world.calls, next.pick));
    case 'stale':
      world.sayStale(picked(world.over, next.pick) ?? 1e9);
      return next.token.startsWith('"') ? world.sayStale(next.token) : undefined;
    case 'ask':
      return world.ask(next.token);
    case 'answer question':
      return world.answerQuestion(picked(world.questions, next.pick));
    case 'pass time':
      return world.passTime(next.ms);
    case 'reconnect':
      return world.reconnect(next.index);
    case 'list changed':
      return world.listChanged();
    case 'leave':
      return world.leave(next.index);
    case 'restart':
      return world.restart();
  }
}

test('whatever several clients and their server do, each client hears exactly what is its own, to the byte', (t) => {
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
  for (const client of [0, 1]) for (const id of TOKENS) world.call(client, id, id);
  t.is(world.calls.length, 2 * TOKENS.length);
  for (const call of [...world.calls].reverse()) {
    world.progress(call);
    world.answer(call, false);
  }
  t.notThrows(() => world.check());
  const left: Message[] = world.clients.flatMap((client) => [...client.heard()]);
  t.deepEqual(left, []);
});
