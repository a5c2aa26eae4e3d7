/**
 * The taps of a recording, and how a message finds the call that it belongs to. In this order: the frame of a request
 * keeps the number of its client's call through all translations; an answer has the number of its request; and any other
 * message has the number of the message that it was caused by, or of the one that it causes.
 */
import { findCanceledId } from '../mcp/classify/correlators.ts';
import { readRequestState } from '../mcp/classify/input-responses.ts';
import { META_PROTOCOL_VERSION } from '../mcp/vocabulary/meta.ts';
import { CANCELED, DISCOVER, INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import type { Call } from '../relay/call.ts';
import { modernIntroductionOf } from '../relay/client-presence.ts';
import type { MessageTap } from '../relay/message-tap.ts';
import { shownName } from '../relay/observer.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import type { Entry, JoiningTap, Journal, Origin } from './entry.ts';

/**
 * Requests of one side whose calls are known. The oldest are forgotten, as some are never answered; their answers then
 * belong to no call. More than this are hardly ever open in one session or connection.
 */
const MAX_KNOWN = 2048;

/** The numbers of calls by the ids of requests. */
class CallNumbers {
  readonly #byId = new Map<JsonRpcId, number>();

  set(id: JsonRpcId | undefined, call: number): void {
    if (id === undefined || call === 0) return;
    this.#byId.set(id, call);
    const [oldest] = this.#byId.size > MAX_KNOWN ? this.#byId.keys() : [];
    if (oldest !== undefined) this.#byId.delete(oldest);
  }

  get(id: JsonRpcId | undefined): number {
    return id === undefined ? 0 : (this.#byId.get(id) ?? 0);
  }

  /** The call of the only open request; 0: there are several, or none. */
  sole(): number {
    const [call = 0] = this.#byId.size === 1 ? this.#byId.values() : [];
    return call;
  }

  take(id: JsonRpcId | undefined): number {
    const call = this.get(id);
    if (id !== undefined) this.#byId.delete(id);
    return call;
  }
}

/** Undefined for any other message than a cancellation. */
function canceledId(frame: Frame): JsonRpcId | undefined {
  return frame.method === CANCELED ? findCanceledId(frame)?.value : undefined;
}

/** A message of a server without a call belongs to the call of the message that it causes at the client. */
function joinCause(journal: Journal, call: number): void {
  const { current } = journal;
  if (current === undefined || current.call !== 0 || call === 0 || current.origin.facts.side !== 'server') return;
  current.call = call;
  current.tap.joined(current);
}

/** Larger results are not searched for questions, which are small. */
const MAX_ROUND_BYTES = 64 * 1024;

/** Remembers a call whose modern client is asked something, which answers by another request. */
function noteRound(journal: Journal, frame: Frame, call: number): void {
  const { kind, bytes } = frame;
  if (kind !== 'result' || bytes.length > MAX_ROUND_BYTES || !bytes.includes('"input_required"')) return;
  const state = readField(frame, 'requestState');
  if (typeof state === 'string') journal.rounds.set(state, call);
}

/** The call that a request of a modern client continues; 0: none that is known. */
function continuedCall(journal: Journal, frame: Frame): number {
  const state = frame.bytes.includes('"requestState"') ? readRequestState(frame)?.text : undefined;
  return state === undefined ? 0 : (journal.rounds.get(state) ?? 0);
}

/** Number of a client's new call. A call at the aggregate goes on at its members. */
function callOfRequest(journal: Journal, frame: Frame, { facts: { carrier } }: Origin): number {
  if (frame.recordedCall === 0) {
    const outer = carrier === 'aggregate' ? (journal.current?.call ?? 0) : 0;
    frame.recordedCall = outer || continuedCall(journal, frame) || journal.nextCall();
  }
  return frame.recordedCall;
}

/** Records what passes between the bridge and a client with a session or a pipe. */
export class SessionTap implements MessageTap, JoiningTap {
  readonly #journal: Journal;
  #origin: Origin;
  /** Calls of the client. */
  readonly #calls = new CallNumbers();
  /** Questions that the client was asked. */
  readonly #questions = new CallNumbers();

  constructor(journal: Journal, origin: Origin) {
    this.#journal = journal;
    this.#origin = origin;
  }

  received(frame: Frame, _call: Call | undefined, handle: () => void): void {
    if (frame.kind === 'request' && this.#origin.facts.client === undefined) this.#learnName(frame);
    const call = this.#callOf(frame);
    const entry = this.#journal.add({ frame, origin: this.#origin, tap: this, direction: 'in', call });
    this.#journal.handle(entry, handle);
  }

  #callOf(frame: Frame): number {
    if (frame.isResponse) return this.#questions.take(frame.id);
    if (frame.kind === 'notification') return this.#calls.get(canceledId(frame));
    const call = callOfRequest(this.#journal, frame, this.#origin);
    this.#calls.set(frame.id, call);
    return call;
  }

  /** A legacy client introduces itself in its handshake, and a modern one in each request. */
  #learnName(request: Frame): void {
    const { era } = this.#origin.facts;
    if (era === 'legacy' && request.method !== INITIALIZE) return;
    const client =
      era === 'modern'
        ? modernIntroductionOf(request).name
        : shownName(asFields(readField(request, 'clientInfo'))?.name);
    if (client !== undefined) this.#origin = this.#origin.with({ client });
  }

  sent(frame: Frame, about: Call | undefined): void {
    const isAnswer = frame.isResponse;
    const call = isAnswer ? this.#calls.take(about?.id ?? frame.id) : this.#calls.get(about?.id);
    if (frame.kind === 'request') this.#questions.set(frame.id, call);
    joinCause(this.#journal, call);
    if (this.#origin.facts.era === 'modern') noteRound(this.#journal, frame, call);
    this.#journal.add({ frame, origin: this.#origin, tap: this, direction: 'out', call });
  }

  joined({ frame, call }: Entry): void {
    if (frame.kind === 'request') this.#calls.set(frame.id, call);
  }
}

/** Records a modern request that comes alone, and what its client gets for it. */
export class CallTap implements MessageTap, JoiningTap {
  readonly #journal: Journal;
  readonly #origin: Origin;
  #call = 0;

  constructor(journal: Journal, origin: Origin) {
    this.#journal = journal;
    this.#origin = origin;
  }

  received(frame: Frame, _call: Call | undefined, handle: () => void): void {
    if (frame.kind === 'request') this.#call = callOfRequest(this.#journal, frame, this.#origin);
    const entry = this.#journal.add({
      ...{ frame, origin: this.#origin, tap: this, direction: 'in' as const },
      call: this.#call,
    });
    this.#journal.handle(entry, handle);
  }

  sent(frame: Frame): void {
    joinCause(this.#journal, this.#call);
    noteRound(this.#journal, frame, this.#call);
    this.#journal.add({ frame, origin: this.#origin, tap: this, direction: 'out', call: this.#call });
  }

  joined({ call }: Entry): void {
    this.#call = call;
  }
}

/** Records what passes between the bridge and a server on one connection. */
export class ConnectionTap implements MessageTap, JoiningTap {
  readonly #journal: Journal;
  #origin: Origin;
  #isEraKnown: boolean;
  /** Requests to the server. */
  readonly #requests = new CallNumbers();
  /** Questions of the server. */
  readonly #questions = new CallNumbers();

  constructor(journal: Journal, origin: Origin, era: 'known' | 'unknown') {
    this.#journal = journal;
    this.#origin = origin;
    this.#isEraKnown = era === 'known';
  }

  sent(frame: Frame): void {
    if (frame.kind === 'request') this.#learnEra(frame);
    const call = this.#callOfSent(frame);
    if (frame.kind === 'request') this.#requests.set(frame.id, call);
    this.#journal.add({ frame, origin: this.#origin, tap: this, direction: 'out', call });
  }

  #callOfSent(frame: Frame): number {
    const { current } = this.#journal;
    if (!frame.isResponse) {
      return frame.recordedCall || (current?.call ?? 0) || this.#requests.get(canceledId(frame));
    }
    const call = this.#questions.take(frame.id) || (current?.call ?? 0);
    // A modern client answers by another request, which goes on with the call that it was asked in.
    const isRetry = current?.origin.facts.side === 'client' && current.frame.kind === 'request';
    if (isRetry && call !== 0 && current.call !== call) {
      current.call = call;
      current.tap.joined(current);
    }
    return call;
  }

  received(frame: Frame, about: Call | undefined, handle: () => void): void {
    const call = frame.isResponse
      ? this.#requests.take(frame.id) || this.#requests.take(about?.id)
      : this.#requests.get(about?.id) || this.#askerOf(frame);
    if (frame.kind === 'request') this.#questions.set(frame.id, call);
    const entry = this.#journal.add({ frame, origin: this.#origin, tap: this, direction: 'in', call });
    this.#journal.handle(entry, handle);
  }

  /** A server asks in the middle of a call. With one open request, there is no other that it can be. */
  #askerOf({ kind }: Frame): number {
    return kind === 'request' ? this.#requests.sole() : 0;
  }

  joined({ frame, call }: Entry): void {
    if (frame.kind === 'request') this.#questions.set(frame.id, call);
  }

  /** On a connection for both eras, requests show which of them is spoken. Detection may try one after the other. */
  #learnEra({ method, bytes }: Frame): void {
    if (method === INITIALIZE) this.#setEra('legacy');
    else if (method === DISCOVER) this.#setEra('modern');
    else if (!this.#isEraKnown) this.#setEra(bytes.includes(META_PROTOCOL_VERSION) ? 'modern' : 'legacy');
  }

  #setEra(era: Era): void {
    this.#isEraKnown = true;
    if (this.#origin.facts.era !== era) this.#origin = this.#origin.with({ era });
  }
}
