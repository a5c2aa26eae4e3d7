import fc from 'fast-check';
import { BridgeError } from '../../../src/errors.ts';
import { findCanceledId } from '../../../src/mcp/classify/correlators.ts';
import { CANCELED } from '../../../src/mcp/vocabulary/methods.ts';
import type { Era } from '../../../src/mcp/vocabulary/revisions.ts';
import { MAX_OPEN_CALLS } from '../../../src/relay/call.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { modernPair, type RelayPair, readyPair } from '../../relay/relay-pair.ts';
import { FakeLane } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { fuzzTarget, insist } from '../target.ts';

/** Few, so that they collide; two of them are one id to some programs. */
const ids = fc.constantFrom<JsonRpcId>(0, 1, '1', '', 'é', -7, 9007199254740991);
const SILENCE_MS = 1000;

const params = fc.record(
  {
    requestId: ids,
    progressToken: ids,
    _meta: fc.record({ progressToken: ids, 'io.modelcontextprotocol/subscriptionId': ids }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);
const methods = fc.constantFrom(
  ...['tools/call', 'tools/list', 'initialize', 'ping', 'subscriptions/listen', 'sampling/createMessage', 'x/y'],
  ...['notifications/cancelled', 'notifications/progress', 'notifications/message', 'notifications/initialized'],
);
const error = fc.record({ code: fc.integer(), message: fc.string() });
const message = fc.oneof(
  { weight: 5, arbitrary: fc.record({ id: ids, method: methods, params }) },
  { weight: 4, arbitrary: fc.record({ method: methods, params }) },
  { weight: 5, arbitrary: fc.record({ id: ids, result: params }) },
  { weight: 2, arbitrary: fc.record({ id: fc.option(ids, { nil: null }), error }) },
);
const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ by: fc.constantFrom('client' as const, 'server' as const), message }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('fault' as const, 'undeliverable' as const), id: ids }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constant('time' as const), ms: fc.nat(2 * SILENCE_MS) }) },
  { weight: 1, arbitrary: fc.record({ by: fc.constantFrom('full' as const, 'drained' as const) }) },
);
const end = fc.constantFrom('client' as const, 'server' as const, 'bridge' as const);

type Step = typeof step extends fc.Arbitrary<infer Kind> ? Kind : never;

const GONE = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited');

/** What both sides said and heard, without a thought of how the relay works. */
class Account {
  readonly pair: RelayPair;
  readonly #said = new Set<Frame>();
  /** How often the client used an id for a request, and what for. */
  readonly #asked = new Map<JsonRpcId, number>();
  readonly #withdrawn = new Map<JsonRpcId, number>();
  readonly #answered = new Map<JsonRpcId, number>();
  /** The same for the server. */
  readonly #questions = new Map<JsonRpcId, number>();
  readonly #replies = new Map<JsonRpcId, number>();

  readonly #era: Era;

  constructor(era: Era) {
    this.#era = era;
    this.pair =
      era === 'modern' ? modernPair({ requestTimeoutMs: SILENCE_MS }) : readyPair({ requestTimeoutMs: SILENCE_MS });
    this.pair.peer.onSend = ({ frame }) => this.#clientHears(frame);
    this.pair.link.onSend = ({ frame }) => this.#serverHears(frame);
  }

  clientSays(text: object): void {
    const frame = clientFrame(text);
    this.#said.add(frame);
    if (frame.kind === 'request') add(this.#asked, frame.id);
    const released = this.pair.peer.released.length;
    this.pair.relay.fromClient(frame, new FakeLane());
    for (const call of this.pair.peer.released.slice(released)) add(this.#withdrawn, call.id);
  }

  serverSays(text: object): void {
    const frame = serverFrame(text);
    this.#said.add(frame);
    if (frame.kind === 'request') add(this.#questions, frame.id);
    this.pair.relay.fromServer(frame);
  }

  #clientHears(frame: Frame): void {
    if (frame.isResponse && frame.id !== undefined) add(this.#answered, frame.id);
    if (frame.kind === 'request') insist(this.#said.has(frame), () => `a question was changed: ${frame.bytes}`);
    // The other way to end a subscription.
    if (this.#era === 'modern' && frame.method === CANCELED) add(this.#withdrawn, findCanceledId(frame)?.value);
    this.#insistOnBytes(frame);
  }

  #serverHears(frame: Frame): void {
    if (frame.isResponse && frame.id !== undefined) add(this.#replies, frame.id);
    if (frame.kind === 'request') insist(this.#said.has(frame), () => `a request was changed: ${frame.bytes}`);
    if (frame.kind === 'result') this.#insistOnBytes(frame);
  }

  /** Errors and withdrawals may be the bridge's own; all else passes as it is. */
  #insistOnBytes(frame: Frame): void {
    const mayBeOurs = frame.kind === 'error' || frame.kind === 'notification' || frame.method === undefined;
    const isListenEnd = frame.kind === 'result' && frame.bytes.includes('subscriptionId');
    insist(this.#said.has(frame) || (mayBeOurs && (frame.kind !== 'result' || isListenEnd)), () => `${frame.bytes}`);
  }

  checkNow(): void {
    for (const [id, count] of this.#answered) {
      const asked = this.#asked.get(id) ?? 0;
      insist(count <= asked, () => `${JSON.stringify(id)} was asked ${asked} times and answered ${count} times`);
    }
    for (const [id, count] of this.#replies) {
      const asked = this.#questions.get(id) ?? 0;
      insist(count <= asked, () => `the server asked ${JSON.stringify(id)} ${asked} times, and got ${count} answers`);
    }
    const { openCalls } = this.pair.relay;
    insist(openCalls <= MAX_OPEN_CALLS, () => `${openCalls} open`);
    const { observer, calls } = this.pair;
    const seenOpen = observer.calls.filter(({ endings }) => endings.length === 0).length;
    insist(seenOpen === openCalls, () => `${openCalls} open, ${seenOpen} seen to be open`);
    insist(calls.size === openCalls, () => `${openCalls} open, ${calls.size} counted`);
    for (const { endings } of observer.calls) insist(endings.length <= 1, () => `seen to end ${endings.length} times`);
  }

  /** Once both ends are closed. */
  checkEnd(): void {
    this.checkNow();
    for (const [id, asked] of this.#asked) {
      const over = (this.#answered.get(id) ?? 0) + (this.#withdrawn.get(id) ?? 0);
      insist(over === asked, () => `${JSON.stringify(id)}: asked ${asked} times, over ${over} times`);
    }
    const { relay, peer, link, ends, clock } = this.pair;
    insist(relay.openCalls === 0, () => `${relay.openCalls} calls stay open`);
    insist(ends.length === 1, () => `ended ${ends.length} times`);
    insist(peer.closedWith.length > 0 && link.closedWith.length > 0, () => 'an end was not let go');
    insist(clock.pendingTimers === 0, () => `${clock.pendingTimers} timers`);
  }
}

function add(counts: Map<JsonRpcId, number>, id: JsonRpcId | undefined): void {
  if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
}

function take(
  { pair, ...account }: { pair: RelayPair } & Pick<Account, 'clientSays' | 'serverSays'>,
  next: Step,
): void {
  switch (next.by) {
    case 'client':
      return account.clientSays(next.message);
    case 'server':
      return account.serverSays(next.message);
    case 'fault':
      return pair.relay.serverFault({ error: GONE, kind: 'result', id: next.id });
    case 'undeliverable':
      return pair.relay.undeliverable(serverFrame({ id: next.id, method: 'ping' }), GONE);
    case 'time':
      pair.clock.advance(next.ms);
      return pair.relay.sweep(pair.clock.now());
    case 'full':
      pair.peer.hasCapacity = false;
      pair.link.hasCapacity = false;
      return;
    case 'drained':
      pair.peer.hasCapacity = true;
      pair.link.hasCapacity = true;
      pair.relay.clientDrained();
      return pair.relay.serverDrained();
  }
}

function finish({ relay }: RelayPair, by: 'client' | 'server' | 'bridge'): void {
  if (by === 'client') relay.clientClosed(GONE);
  else if (by === 'server') relay.serverClosed(GONE);
  else relay.close(GONE);
}

function relayTarget(era: Era) {
  return fuzzTarget({
    name: `relay-${era}`,
    promise: `whatever two ${era} sides say, each request is answered once or withdrawn, and bytes pass as they are`,
    runs: 300,
    input: fc.tuple(fc.array(step, { maxLength: 80 }), end),
    holds: ([steps, by]) => {
      const account = new Account(era);
      const { pair } = account;
      const sides = {
        pair,
        clientSays: (text: object) => account.clientSays(text),
        serverSays: (text: object) => account.serverSays(text),
      };
      for (const next of steps) {
        take(sides, next);
        account.checkNow();
      }
      finish(pair, by);
      account.checkEnd();
    },
  });
}

export const legacyRelay = relayTarget('legacy');
export const modernRelay = relayTarget('modern');
