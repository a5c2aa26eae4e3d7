import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { BridgeError } from '../../../src/errors.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { ALL, ModernBridge, type ModernRequest } from '../../eras/modern-to-legacy/modern-bridge.ts';
import { anyJson } from '../../wire/json-text.ts';
import { fuzzTarget, insist } from '../target.ts';

const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited');
const PRINCIPALS = ['ada', 'bob', 'eve'] as const;
const principal = fc.constantFrom(...PRINCIPALS);
const ids = fc.constantFrom<JsonRpcId>(0, 1, 2, '1', 'é');
const pick = fc.nat(50);
const payload = anyJson.filter((value) => !JSON.stringify(value).includes('owner'));

const methods = fc.constantFrom(
  ...['tools/call', 'tools/call', 'tools/call', 'prompts/get', 'resources/read', 'tools/list', 'completion/complete'],
  ...['subscriptions/listen', 'server/discover', 'acme/do', 'initialize', 'ping', 'tasks/get'],
);
const capabilities = fc.constantFrom(ALL, {}, { sampling: {} });
const notices = fc.constantFrom(
  ...['notifications/message', 'notifications/tools/list_changed', 'notifications/resources/updated', 'acme/event'],
);
const questions = fc.constantFrom('elicitation/create', 'sampling/createMessage', 'roots/list', 'ping', 'acme/ask');

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      by: fc.constant('asks' as const),
      principal,
      method: methods,
      capabilities,
      payload,
      token: fc.option(ids, { nil: undefined }),
      logLevel: fc.constantFrom(undefined, 'debug', 'error'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ by: fc.constant('retries' as const), pick, principal: fc.option(principal) }) },
  { weight: 2, arbitrary: fc.record({ by: fc.constantFrom('cancels' as const, 'leaves' as const), pick }) },
  { weight: 9, arbitrary: fc.record({ by: fc.constant('answer' as const), pick, payload, isError: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('progress' as const), pick }) },
  { weight: 4, arbitrary: fc.record({ by: fc.constant('question' as const), pick, id: ids, method: questions }) },
  { weight: 2, arbitrary: fc.record({ by: fc.constant('notice' as const), pick, method: notices }) },
  { weight: 2, arbitrary: fc.record({ by: fc.constantFrom('nonsense' as const, 'exit' as const), pick, id: ids }) },
  { weight: 4, arbitrary: fc.record({ by: fc.constant('time' as const), ms: fc.constantFrom(25, 1000, 400_000) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

type AskStep = Extract<Step, { by: 'asks' }>;

interface Asked {
  readonly request: ModernRequest;
  readonly step: AskStep;
  readonly params: object;
  /** Names the call, over all its rounds. */
  readonly call: number;
  state: 'open' | 'answered' | 'left';
  /** Of an `input_required`, as it came. */
  retry: { readonly requestState: string; readonly inputRequests: object } | undefined;
}

/** A request of a session as its server sees it. */
interface Seen {
  readonly session: number;
  readonly id: JsonRpcId;
  readonly token: JsonRpcId | undefined;
  /** Undefined as long as no request of the session has named one. */
  readonly owner: string | undefined;
  readonly call: number | undefined;
}

/** Modern clients, each message named after its owner and its call, and legacy servers that echo the names. */
class World {
  readonly bridge = new ModernBridge();
  readonly asked: Asked[] = [];
  #calls = 0;

  take(next: Step): void {
    switch (next.by) {
      case 'asks':
        this.#ask(next, { ...ownedParams(next, this.#calls) }, this.#calls++);
        break;
      case 'retries':
        this.#retry(next.pick, next.principal ?? undefined);
        break;
      case 'cancels':
      case 'leaves':
        this.#withdraw(next.pick, next.by);
        break;
      case 'time':
        this.bridge.clock.advance(next.ms);
        break;
      default:
        this.#server(next);
    }
    for (const one of this.asked) this.#listen(one);
  }

  #ask(by: AskStep, params: object, call: number): void {
    const { method, capabilities, token, logLevel } = by;
    const options = {
      id: this.asked.length,
      principal: by.principal,
      capabilities,
      ...(token !== undefined && { progressToken: token }),
      ...(logLevel !== undefined && { logLevel }),
    };
    const request = this.bridge.ask(method, params, options);
    this.asked.push({ request, step: by, params, call, state: 'open', retry: undefined });
  }

  /** As a client does, or with somebody else's state. */
  #retry(index: number, thief: (typeof PRINCIPALS)[number] | undefined): void {
    const waiting = this.asked.filter(({ retry }) => retry !== undefined);
    const one = waiting[index % Math.max(1, waiting.length)];
    if (one?.retry === undefined) return;
    const { requestState, inputRequests } = one.retry;
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((name) => [name, { action: 'decline' }]));
    const by = thief === undefined ? one.step : { ...one.step, principal: thief };
    this.#ask(by, { ...one.params, requestState, inputResponses }, one.call);
  }

  #withdraw(index: number, how: 'cancels' | 'leaves'): void {
    const open = this.asked.filter(({ state }) => state === 'open');
    const one = open[index % Math.max(1, open.length)];
    if (one === undefined) return;
    one.state = 'left';
    one.request[how]();
  }

  // ---- the servers

  #seen(): readonly Seen[] {
    return this.bridge.dialer.dialed.flatMap(({ link }, session) => {
      const owner = ownerOf(link.sent.map(({ frame }) => frame));
      return link.sent
        .filter(({ frame }) => frame.kind === 'request' && frame.method !== 'initialize')
        .map(({ frame }) => ({ session, owner, ...this.#readRequest(frame) }));
    });
  }

  #readRequest(frame: Frame): Omit<Seen, 'session' | 'owner'> {
    const { id, params = {} } = frame.json() as { id: JsonRpcId; params?: Params };
    const { call, payload } = params.arguments ?? {};
    if (call !== undefined) {
      const sent = this.asked.find((one) => one.call === call);
      insist(isDeepStrictEqual(payload, plain(sent?.step.payload)), () => `arguments were changed: ${frame.bytes}`);
    }
    return { id, call, token: params._meta?.progressToken };
  }

  #server(next: Step): void {
    const { bridge } = this;
    const sessions = bridge.dialer.dialed.length;
    if (sessions === 0) return;
    const seen = this.#seen();
    const request = 'pick' in next ? seen[next.pick % Math.max(1, seen.length)] : undefined;
    switch (next.by) {
      case 'answer': {
        if (request === undefined) return;
        const { owner, call } = request;
        const body = { owner, call, payload: next.payload };
        const outcome = next.isError ? { error: { code: 7, message: 'no', data: body } } : { result: body };
        return bridge.says({ id: request.id, ...outcome }, request.session);
      }
      case 'progress':
        if (request?.token === undefined) return;
        return bridge.says(
          {
            method: 'notifications/progress',
            params: { progressToken: request.token, progress: 1, owner: request.owner },
          },
          request.session,
        );
      case 'question': {
        const session = next.pick % sessions;
        const owner = seen.find((one) => one.session === session)?.owner;
        return bridge.says({ id: next.id, method: next.method, params: { owner, message: 'x' } }, session);
      }
      case 'notice': {
        const session = next.pick % sessions;
        const owner = seen.find((one) => one.session === session)?.owner;
        return bridge.says({ method: next.method, params: { owner, level: 'error', uri: 'a:1', data: 1 } }, session);
      }
      case 'nonsense':
        if (seen.some(({ id }) => id === next.id)) return;
        return bridge.says({ id: next.id, result: { owner: 'nobody' } }, next.pick % sessions);
      case 'exit':
        return bridge.dialer.dialed.at(next.pick % sessions)?.listener.serverClosed(EXITED);
      default:
    }
  }

  // ---- the clients

  #listen(one: Asked): void {
    for (const { frame } of one.request.listener.received.splice(0)) {
      const owner = ownerOf([frame]);
      insist(owner === undefined || owner === one.step.principal, () => `${one.step.principal} hears ${frame.bytes}`);
      if (frame.isResponse) this.#answered(one, frame);
    }
  }

  #answered(one: Asked, frame: Frame): void {
    insist(one.state === 'open', () => `answered although ${one.state}: ${frame.bytes}`);
    insist(frame.id === one.request.call.id, () => `under a wrong id: ${frame.bytes}`);
    one.state = 'answered';
    const { result } = frame.json() as { result?: Result };
    if (result === undefined) return;
    insist(typeof result.resultType === 'string', () => `not of the modern era: ${frame.bytes}`);
    if (result.resultType === 'input_required') {
      const { requestState = '', inputRequests = {} } = result;
      one.retry = { requestState, inputRequests };
    }
    if (result.call === undefined) return;
    insist(result.call === one.call, () => `the answer to call ${result.call} goes to call ${one.call}`);
    insist('payload' in result, () => 'the payload is gone');
  }

  async finish(): Promise<void> {
    const { bridge } = this;
    await bridge.modern.close();
    for (const one of this.asked) {
      this.#listen(one);
      if (one.state === 'open') one.request.leaves();
      insist(one.state !== 'open', () => `${one.step.method} is never answered`);
    }
    insist(bridge.clock.pendingTimers === 0, () => `${bridge.clock.pendingTimers} timers stay`);
  }
}

interface Params {
  readonly arguments?: { readonly call?: number; readonly payload?: unknown };
  readonly _meta?: { readonly progressToken?: JsonRpcId };
}

interface Result {
  readonly resultType?: unknown;
  readonly requestState?: string;
  readonly inputRequests?: object;
  readonly call?: number;
}

/** Whom the messages name; all of a session name one. */
function ownerOf(frames: readonly Frame[]): string | undefined {
  const owners = frames.flatMap((frame) =>
    [...frame.bytes.toString().matchAll(/"owner":"(\w+)"/g)].map(([, name]) => name),
  );
  const [owner] = owners;
  insist(
    owners.every((other) => other === owner),
    () => `of several owners: ${owners}`,
  );
  return owner;
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function ownedParams({ method, principal, payload }: AskStep, call: number): object {
  const owned = { owner: principal, call, payload };
  switch (method) {
    case 'subscriptions/listen':
      return { notifications: { toolsListChanged: true, resourceSubscriptions: ['a:1'] } };
    case 'resources/read':
      return { uri: 'a:1', arguments: owned };
    default:
      return { name: 'x', arguments: owned };
  }
}

export const modernToLegacy = fuzzTarget({
  name: 'modern-to-legacy',
  promise: 'modern requests to legacy servers are answered once, with the answer that is theirs and what it held',
  runs: 120,
  input: fc.array(step, { maxLength: 60 }),
  holds: async (steps) => {
    const world = new World();
    for (const next of steps) world.take(next);
    await world.finish();
  },
});
