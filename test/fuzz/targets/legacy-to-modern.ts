import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { BridgeError } from '../../../src/errors.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { DISCOVERY, LegacyFront, type LegacySession, META } from '../../eras/legacy-to-modern/legacy-session.ts';
import { anyJson } from '../../wire/json-text.ts';
import { fuzzTarget, insist } from '../target.ts';

const GONE = new BridgeError('ERR_UPSTREAM_CLOSED', 'the server is gone');
const SESSIONS = 2;
const session = fc.nat(SESSIONS - 1);
const pick = fc.nat(50);
const payload = anyJson;

const methods = fc.constantFrom(
  ...['tools/call', 'tools/call', 'tools/call', 'prompts/get', 'resources/read', 'tools/list', 'resources/subscribe'],
  ...['resources/unsubscribe', 'logging/setLevel', 'ping', 'initialize', 'acme/do', 'tasks/get', 'server/discover'],
);
const tells = fc.constantFrom(
  ...['notifications/cancelled', 'notifications/initialized', 'notifications/progress', 'acme/event'],
  'notifications/roots/list_changed',
);
const notices = fc.constantFrom(
  ...['notifications/message', 'notifications/tools/list_changed', 'notifications/resources/updated', 'acme/event'],
  ...['notifications/subscriptions/acknowledged', 'notifications/cancelled', 'notifications/progress'],
);
const inputs = fc.dictionary(
  fc.constantFrom('a', 'b', '__proto__', ''),
  fc.record({
    method: fc.constantFrom('elicitation/create', 'sampling/createMessage', 'roots/list', 'acme/ask'),
    params: fc.constantFrom({}, { message: 'x', requestedSchema: {} }, { messages: [], maxTokens: 1 }),
  }),
  { maxKeys: 3 },
);

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      by: fc.constant('asks' as const),
      session,
      method: methods,
      payload,
      reuses: fc.boolean(),
      hasToken: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('tells' as const), session, method: tells, pick }) },
  { weight: 5, arbitrary: fc.record({ by: fc.constant('replies' as const), session, pick, isError: fc.boolean() }) },
  {
    weight: 9,
    arbitrary: fc.record({
      by: fc.constant('answer' as const),
      session,
      pick,
      payload,
      kind: fc.constantFrom('result' as const, 'result' as const, 'error' as const, 'bare' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ by: fc.constant('input' as const), session, pick, inputs }) },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('notice' as const), session, pick, method: notices }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('nonsense' as const, 'question' as const), session, pick }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('server goes' as const, 'client goes' as const), session }) },
  { weight: 4, arbitrary: fc.record({ by: fc.constant('time' as const), ms: fc.constantFrom(30, 1000, 700_000) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

interface Message {
  readonly id?: JsonRpcId;
  readonly method?: string;
  readonly params?: {
    readonly arguments?: { readonly call?: number; readonly payload?: unknown };
    readonly _meta?: object;
  };
  readonly result?: { readonly call?: number; readonly resultType?: unknown };
}

/** One legacy client with the modern server it is shown. */
class Conversation {
  readonly session: LegacySession;
  readonly #asked = new Map<JsonRpcId, number>();
  readonly #over = new Map<JsonRpcId, number>();
  /** Payload of each call, by its number; and the number of the call each id is used for now. */
  readonly #payloads: unknown[] = [];
  readonly #calls = new Map<JsonRpcId, Set<number>>();
  readonly #questions: JsonRpcId[] = [];
  readonly #seen: Message[] = [];

  constructor(front: LegacyFront) {
    this.session = front.open({ capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } });
    this.session.peer.onSend = ({ frame }) => this.#clientHears(frame);
    const { link } = this.session;
    link.onSend = ({ frame }) => this.#serverHears(frame);
  }

  asks({ method, payload, reuses, hasToken }: Extract<Step, { by: 'asks' }>): void {
    const call = this.#payloads.push(plain(payload)) - 1;
    const id = reuses ? 'again' : call;
    add(this.#asked, id);
    this.#calls.set(id, (this.#calls.get(id) ?? new Set()).add(call));
    const own = { arguments: { call, payload }, name: 'x', uri: 'a:1', level: 'error' };
    this.#says({ id, method, params: { ...own, ...(hasToken && { _meta: { progressToken: call } }) } });
  }

  tells(method: string, index: number): void {
    const [requestId = 0] = at([...this.#asked], index) ?? [];
    this.#says({ method, params: { requestId, progressToken: requestId, progress: 1 } });
  }

  replies(index: number, isError: boolean): void {
    const id = at(this.#questions, index);
    if (id === undefined) return;
    this.#says(isError ? { id, error: { code: 1, message: 'no' } } : { id, result: { action: 'accept', roots: [] } });
  }

  #says(message: object): void {
    const { peer } = this.session;
    const before = peer.released.length;
    this.session.says(message);
    for (const call of peer.released.slice(before)) add(this.#over, call.id);
  }

  server(next: Step): void {
    if (next.by === 'server goes') return this.session.serverCloses(GONE);
    if (!('pick' in next)) return;
    const request = at(this.#seen, next.pick);
    const { id, params } = request ?? {};
    switch (next.by) {
      case 'answer': {
        if (id === undefined) return;
        if (request?.method === 'server/discover') return this.session.serverSays({ id, result: DISCOVERY });
        const body = { call: params?.arguments?.call, payload: next.payload };
        const complete = { ...body, content: [], resultType: 'complete', _meta: { [`${META}serverInfo`]: {} } };
        if (next.kind === 'error')
          return this.session.serverSays({ id, error: { code: 1, message: 'no', data: body } });
        return this.session.serverSays({ id, result: next.kind === 'bare' ? body : complete });
      }
      case 'input':
        if (id === undefined) return;
        return this.session.serverSays({
          id,
          result: { resultType: 'input_required', inputRequests: next.inputs, requestState: 'opaque' },
        });
      case 'notice':
        return this.session.serverSays({
          method: next.method,
          params: {
            requestId: id,
            progressToken: (params?._meta as { progressToken?: unknown })?.progressToken,
            progress: 1,
            uri: 'a:1',
            level: 'error',
            notifications: {},
            _meta: { [`${META}subscriptionId`]: id },
          },
        });
      case 'nonsense':
        return this.session.serverSays({ id: `no-${next.pick}`, result: {} });
      case 'question':
        return this.session.serverSays({ id: next.pick, method: 'sampling/createMessage', params: {} });
      default:
    }
  }

  #serverHears(frame: Frame): void {
    const message = frame.json() as Message;
    if (frame.kind === 'request') this.#seen.push(message);
    const { call, payload } = message.params?.arguments ?? {};
    if (call === undefined) return;
    insist(isDeepStrictEqual(payload, this.#payloads[call]), () => `arguments were changed: ${frame.bytes}`);
  }

  #clientHears(frame: Frame): void {
    if (frame.kind === 'request' && frame.id !== undefined) this.#questions.push(frame.id);
    if (!frame.isResponse || frame.id === undefined) return;
    add(this.#over, frame.id);
    const { result } = frame.json() as Message;
    const isOwn = result?.call === undefined || this.#calls.get(frame.id)?.has(result.call) === true;
    insist(isOwn, () => `another call's answer: ${frame.bytes}`);
    insist(result?.resultType === undefined, () => `not of the legacy era: ${frame.bytes}`);
    this.check();
  }

  check(): void {
    for (const [id, over] of this.#over) {
      const asked = this.#asked.get(id) ?? 0;
      insist(over <= asked, () => `${JSON.stringify(id)}: asked ${asked} times, over ${over} times`);
    }
  }

  finish(): void {
    this.session.relay.clientClosed(GONE);
    this.check();
    for (const [id, asked] of this.#asked) {
      insist(this.#over.get(id) === asked, () => `${JSON.stringify(id)}: asked ${asked}, over ${this.#over.get(id)}`);
    }
    insist(this.session.relay.openCalls === 0, () => 'calls stay open');
  }
}

function at<Item>(items: readonly Item[], index: number): Item | undefined {
  return items[index % Math.max(1, items.length)];
}

function add(counts: Map<JsonRpcId, number>, id: JsonRpcId): void {
  counts.set(id, (counts.get(id) ?? 0) + 1);
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

export const legacyToModern = fuzzTarget({
  name: 'legacy-to-modern',
  promise: 'requests of legacy sessions to modern servers are answered once, with what is theirs and what it held',
  runs: 120,
  input: fc.array(step, { maxLength: 60 }),
  holds: async (steps) => {
    const front = new LegacyFront();
    const sessions = Array.from({ length: SESSIONS }, () => new Conversation(front));
    for (const next of steps) {
      if (next.by === 'time') {
        front.clock.advance(next.ms);
        continue;
      }
      const one = sessions[next.session] as Conversation;
      if (next.by === 'asks') one.asks(next);
      else if (next.by === 'tells') one.tells(next.method, next.pick);
      else if (next.by === 'replies') one.replies(next.pick, next.isError);
      else if (next.by === 'client goes') one.session.relay.clientClosed(GONE);
      else one.server(next);
    }
    for (const one of sessions) one.finish();
    await front.upstream.close();
    // The last requests of a session have a moment to leave.
    front.clock.advance(10_000);
    insist(front.clock.pendingTimers === 0, () => `${front.clock.pendingTimers} timers stay`);
  },
});
