import fc from 'fast-check';
import type { BridgeError } from '../../../src/errors.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { EXITED, SERVER_RESULT, SharedBridge } from '../../relay/shared/legacy/shared-bridge.ts';
import { ENVELOPE, ModernBridge } from '../../relay/shared/modern/modern-bridge.ts';
import type { FakeConnector } from '../../support/fake-connections.ts';
import type { FakePeer } from '../../support/fake-peers.ts';
import { fuzzTarget, insist } from '../target.ts';

const CLIENTS = 3;
/** Few, so that they collide among clients, and with the numbers the bridge gives. */
const ids = fc.constantFrom<JsonRpcId>(0, 1, 2, 3, '1', '', 'é');
const client = fc.nat(CLIENTS - 1);

const clientMethods = fc.constantFrom(
  ...['tools/call', 'tools/call', 'initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'x/y', 'tasks/list'],
  ...['resources/unsubscribe', 'subscriptions/listen', 'server/discover', 'completion/complete'],
);
const notices = fc.constantFrom(
  ...['notifications/cancelled', 'notifications/progress', 'notifications/initialized', 'x/event'],
  'notifications/roots/list_changed',
);
const serverNotices = fc.constantFrom(
  ...['notifications/cancelled', 'notifications/progress', 'notifications/message', 'notifications/tools/list_changed'],
  ...['notifications/resources/updated', 'notifications/elicitation/complete', 'x/event'],
);
const params = fc.record(
  {
    requestId: ids,
    progressToken: ids,
    level: fc.constantFrom('debug', 'emergency', 'loud', 7),
    uri: fc.constantFrom('a:1', 'a:2'),
    elicitationId: fc.constantFrom('e1', 'e2'),
    notifications: fc.constant({ toolsListChanged: true }),
    token: ids,
  },
  { requiredKeys: [] },
);
const outcome = fc.constantFrom('result' as const, 'error' as const);

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ by: fc.constant('asks' as const), client, id: ids, method: clientMethods, params }),
  },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('tells' as const), client, method: notices, params }) },
  { weight: 2, arbitrary: fc.record({ by: fc.constant('replies' as const), client, id: ids, outcome }) },
  { weight: 8, arbitrary: fc.record({ by: fc.constant('server answers' as const), pick: fc.nat(50), outcome }) },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('server reports' as const), pick: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ by: fc.constant('server answers wrongly' as const), id: ids, outcome }) },
  { weight: 3, arbitrary: fc.record({ by: fc.constant('server tells' as const), method: serverNotices, params }) },
  {
    weight: 3,
    arbitrary: fc.record({
      by: fc.constant('server asks' as const),
      id: ids,
      method: fc.constantFrom('sampling/createMessage', 'roots/list', 'ping', 'elicitation/create'),
      params,
    }),
  },
  { weight: 1, arbitrary: fc.record({ by: fc.constant('leaves' as const), client }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constant('server exits' as const) }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constant('time' as const), ms: fc.nat(2000) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

interface Member {
  readonly peer: FakePeer;
  says(message: string | object): Frame;
  leaves(): void;
  readonly relay: { readonly openCalls: number; readonly isClosed: boolean };
}

/** What both shared servers have in common, as far as this needs it. */
interface Shared {
  readonly dialer: FakeConnector;
  readonly clock: { advance(ms: number): void; readonly pendingTimers: number };
  says(message: string | object): void;
  exits(reason: BridgeError): void;
  readonly server: { close(): Promise<void> };
}

interface Seen {
  readonly id: JsonRpcId;
  readonly params?: { readonly owner?: string; readonly _meta?: { readonly progressToken?: JsonRpcId } };
}

/** Clients whose every message names its owner, before a server that echoes the name with what belongs to it. */
class Crowd {
  readonly #shared: Shared;
  readonly #meta: object;
  readonly #members: readonly Member[];
  readonly #present: Set<number>;
  /** How often each client asked under an id, and was answered or let go. */
  readonly #asked = new Map<string, number>();
  readonly #over = new Map<string, number>();

  constructor(shared: Shared, members: readonly Member[], meta: object) {
    this.#shared = shared;
    this.#members = members;
    this.#meta = meta;
    this.#present = new Set(members.keys());
    for (const [index, { peer }] of members.entries()) peer.onSend = ({ frame }) => this.#hears(index, frame);
  }

  take(next: Step): void {
    const { dialer } = this.#shared;
    const isServed = dialer.dialed.length > 0;
    switch (next.by) {
      case 'asks': {
        const { id, method } = next;
        this.#says(next.client, { id, method, params: this.#owned(next.client, next.params) }, id);
        return;
      }
      case 'tells':
        return this.#says(next.client, { method: next.method, params: this.#owned(next.client, next.params) });
      case 'replies':
        return this.#says(next.client, { id: next.id, [next.outcome]: outcomeOf(next.outcome, ownerOf(next.client)) });
      case 'time':
        return this.#shared.clock.advance(next.ms);
      case 'leaves':
        return this.#leaves(next.client);
      default:
        if (isServed) this.#server(next);
    }
  }

  #owned(index: number, given: object): object {
    return {
      ...given,
      owner: ownerOf(index),
      _meta: { ...this.#meta, ...('token' in given && { progressToken: given.token }) },
    };
  }

  #says(index: number, message: object, id?: JsonRpcId): void {
    if (!this.#present.has(index)) return;
    if (id !== undefined) add(this.#asked, index, id);
    const member = this.#members[index] as Member;
    const before = member.peer.released.length;
    member.says(message);
    for (const call of member.peer.released.slice(before)) add(this.#over, index, call.id);
  }

  #server(next: Step): void {
    const { dialer } = this.#shared;
    const seen = dialer.latest.link.sent
      .filter(({ frame }) => frame.kind === 'request')
      .map(({ frame }) => frame.json() as Seen);
    switch (next.by) {
      case 'server answers': {
        const request = seen[next.pick % Math.max(1, seen.length)];
        // Also what was answered before: ids of the bridge are not used twice.
        if (request === undefined) return;
        const isHello = request.params?.owner === undefined;
        const answer = isHello ? SERVER_RESULT : outcomeOf(next.outcome, request.params?.owner ?? '');
        return this.#shared.says({ id: request.id, [isHello ? 'result' : next.outcome]: answer });
      }
      case 'server reports': {
        const request = seen[next.pick % Math.max(1, seen.length)];
        const token = request?.params?._meta?.progressToken;
        if (token === undefined) return;
        const report = { progressToken: token, progress: 1, owner: request?.params?.owner };
        return this.#shared.says({ method: 'notifications/progress', params: report });
      }
      case 'server answers wrongly':
        if (seen.some(({ id }) => id === next.id)) return;
        return this.#shared.says({ id: next.id, [next.outcome]: outcomeOf(next.outcome, 'nobody') });
      case 'server tells':
        // A token or an id of somebody would make it theirs.
        if (seen.some(({ id }) => id === next.params.progressToken)) return;
        return this.#shared.says({ method: next.method, params: next.params });
      case 'server asks':
        return this.#shared.says({ id: next.id, method: next.method, params: next.params });
      case 'server exits':
        return this.#shared.exits(EXITED);
      default:
    }
  }

  #hears(index: number, frame: Frame): void {
    const owner = /"owner":"([^"]*)"/.exec(frame.bytes.toString())?.[1];
    const isOwn = owner === undefined || owner === ownerOf(index);
    insist(isOwn, () => `${ownerOf(index)} hears ${frame.bytes}`);
    if (!frame.isResponse || frame.id === undefined) return;
    add(this.#over, index, frame.id);
    const [asked, over] = [this.#asked, this.#over].map((counts) => counts.get(key(index, frame.id ?? '')) ?? 0);
    insist((over ?? 0) <= (asked ?? 0), () => `${ownerOf(index)} is answered once more: ${frame.bytes}`);
  }

  #leaves(index: number): void {
    if (!this.#present.delete(index)) return;
    this.#members[index]?.leaves();
  }

  /** Everybody goes; nothing may be left. */
  finish(): void {
    for (const index of this.#members.keys()) this.#leaves(index);
    for (const { relay } of this.#members) {
      insist(relay.isClosed && relay.openCalls === 0, () => 'a client is gone and its calls are not');
    }
    for (const [who, asked] of this.#asked) {
      const over = this.#over.get(who) ?? 0;
      insist(over === asked, () => `${who}: asked ${asked} times, over ${over} times`);
    }
    void this.#shared.server.close();
    const { pendingTimers } = this.#shared.clock;
    insist(pendingTimers === 0, () => `${pendingTimers} timers stay`);
  }
}

const ownerOf = (index: number): string => `client-${index}`;
const key = (index: number, id: JsonRpcId): string => `${ownerOf(index)} ${JSON.stringify(id)}`;

function add(counts: Map<string, number>, index: number, id: JsonRpcId): void {
  counts.set(key(index, id), (counts.get(key(index, id)) ?? 0) + 1);
}

function outcomeOf(kind: 'result' | 'error', owner: string): object {
  return kind === 'result' ? { content: [], owner } : { code: 1, message: 'no', data: { owner } };
}

function sharedTarget(name: string, gather: () => Crowd) {
  return fuzzTarget({
    name,
    promise: 'of a server shared by several clients each hears only what is its own, and every call ends',
    runs: 150,
    input: fc.array(step, { maxLength: 100 }),
    holds: (steps) => {
      const crowd = gather();
      for (const next of steps) crowd.take(next);
      crowd.finish();
    },
  });
}

export const sharedLegacy = sharedTarget('shared-legacy', () => {
  const bridge = new SharedBridge();
  const capabilities = { sampling: {}, roots: {}, elicitation: { form: {}, url: {} } };
  const members = Array.from({ length: CLIENTS }, () => bridge.join({ capabilities }));
  return new Crowd(bridge, members, {});
});

export const sharedModern = sharedTarget('shared-modern', () => {
  const bridge = new ModernBridge();
  return new Crowd(
    bridge,
    Array.from({ length: CLIENTS }, () => bridge.connect()),
    ENVELOPE,
  );
});
