import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { findCanceledId, rewriteSubscriptionId } from '../../mcp/classify/correlators.ts';
import { readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { type ListenFilter, readListenFilter } from '../../mcp/translate/listen-filter.ts';
import {
  CANCELED,
  DISCOVER,
  INITIALIZE,
  INITIALIZED,
  LISTEN,
  LISTEN_ACKNOWLEDGED,
  PING,
  PROMPTS_CHANGED,
  RESOURCE_UPDATED,
  RESOURCES_CHANGED,
  SET_LEVEL,
  SUBSCRIBE,
  TOOLS_CHANGED,
  UNSUBSCRIBE,
} from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import type { CallFinder, FoundCall } from './find-call.ts';
import { acknowledge, answerDiscover, answerInitialize, findHandshake } from './handshakes.ts';
import { Playback, type PlaybackHost, type PlayedStep } from './playback.ts';
import type { Recording } from './read-recording.ts';
import { idKey, type RecordedCall, type RecordedStep, readState } from './recorded-call.ts';
import { refuseAnswer, refuseRound, refuseUnknown } from './refusals.ts';

export interface ReplayCarrierOptions {
  readonly recording: Recording;
  /** Shared by all connections. */
  readonly finder: CallFinder;
  /** See `PlaybackOptions`. */
  readonly speed: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the connection was closed. */
  readonly closed: () => void;
}

/** Requests that every legacy server of their capability accepts, and that change nothing in a recording. */
const ACCEPTED: ReadonlySet<string> = new Set([PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE]);

/** A subscription of the client, and what it is told of. */
interface Listening {
  readonly request: Frame;
  readonly granted: ListenFilter;
}

/** A server in this process that says what a recorded one has said. One carrier is one connection to it. */
export class ReplayCarrier implements Carrier, PlaybackHost {
  readonly process = undefined;
  /** Requests are answered from memory, so that none waits to be taken. */
  readonly isFull = false;
  readonly #options: ReplayCarrierOptions;
  readonly #listener: CarrierListener;
  /** All playbacks that may still send something. Each belongs to a call, whose number the bridge limits. */
  readonly #playing = new Set<Playback>();
  /** The playbacks of requests that have no answer yet. */
  readonly #open = new Map<string, Playback>();
  readonly #listening = new Map<string, Listening>();
  /** Playbacks that wait for the client's answer to a question. */
  readonly #asking = new Map<string, Playback>();
  #lastQuestion = 0;
  #isPaused = false;
  #isClosed = false;

  constructor(options: ReplayCarrierOptions, listener: CarrierListener) {
    this.#options = options;
    this.#listener = listener;
  }

  // ---- from the connection

  send(frame: Frame): boolean {
    if (this.#isClosed) return true;
    switch (frame.kind) {
      case 'request':
        this.#requested(frame);
        break;
      case 'notification':
        this.#notified(frame);
        break;
      case 'result':
      case 'error':
        this.#answered(frame);
    }
    return true;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    for (const playback of [...this.#playing]) playback.advance();
  }

  close(_reason: BridgeError): void {
    this.#isClosed = true;
    for (const playback of [...this.#playing]) playback.stop();
    this.#listening.clear();
    this.#asking.clear();
    this.#options.closed();
  }

  // ---- requests

  #requested(request: Frame): void {
    const { recording, finder } = this.#options;
    const { method = '' } = request;
    if (method === INITIALIZE) return this.#answer(request, answerInitialize(request, recording, finder));
    if (method === DISCOVER) return this.#answer(request, answerDiscover(request, recording, finder));
    const era = this.#eraOf(request);
    if (method === LISTEN) return this.#listen(request, era);
    const state = era === 'modern' ? readState(readField(request, 'requestState')) : undefined;
    if (state === 'end') return this.#refuse(request, refuseRound(method));
    const round = state === undefined ? undefined : this.#roundOf(state, method);
    const found: FoundCall | undefined = round ?? (method === PING ? undefined : finder.find(request, era));
    if (found !== undefined) return this.#replay(request, found);
    if (ACCEPTED.has(method)) return this.#answer(request, resultFrame(idToken(request), {}));
    this.#refuse(request, refuseUnknown(request, era, finder));
  }

  /** A recorded server that spoke one era is asked in that one. */
  #eraOf(request: Frame): Era {
    const { eras } = this.#options.recording;
    const [only, ...others] = eras;
    if (only !== undefined && others.length === 0) return only;
    return 'fault' in readRequestMetadata(request) ? 'legacy' : 'modern';
  }

  #roundOf(ordinal: number, method: string): FoundCall | undefined {
    const call = this.#options.recording.calls[ordinal];
    return call?.method === method ? { call, turn: 'first' } : undefined;
  }

  #replay(request: Frame, { call, turn }: FoundCall): void {
    const { answer } = call;
    const ending: PlayedStep =
      answer.kind === 'whole'
        ? { kind: 'answer', frame: answer.frame, delayMs: answer.delayMs }
        : { kind: 'answer', frame: this.#refusalOf(request, refuseAnswer(call)), delayMs: 0 };
    const after = turn === 'first' ? changesAfter(call) : [];
    this.#play(request, call.era, [...call.steps, ending, ...after]);
  }

  /** Opens a subscription, which lasts until the client ends it. What a recorded one was told comes with it. */
  #listen(request: Frame, era: Era): void {
    const found = this.#options.finder.find(request, era);
    const acknowledged = found?.call.steps.find(({ frame }) => frame.method === LISTEN_ACKNOWLEDGED)?.frame;
    const first = acknowledged ?? acknowledge(request);
    const granted = readListenFilter(first) ?? readListenFilter(request);
    if (granted !== undefined) this.#listening.set(idKey(request.id), { request, granted });
    const after = found?.turn === 'first' ? changesAfter(found.call) : [];
    this.#play(request, era, [{ kind: 'notification', frame: first, delayMs: 0 }, ...after]);
  }

  #answer(request: Frame, answer: Frame): void {
    this.#play(request, 'legacy', [{ kind: 'answer', frame: answer, delayMs: 0 }]);
  }

  #refuse(request: Frame, error: BridgeError): void {
    this.#answer(request, this.#refusalOf(request, error));
  }

  #refusalOf(request: Frame, error: BridgeError): Frame {
    const { code } = error;
    this.#options.log.warn({ code, method: request.method }, 'a request has no recorded answer, as its client is told');
    return errorFrame(idToken(request), rpcErrorOf(error));
  }

  #play(request: Frame | undefined, era: Era, steps: readonly PlayedStep[]): void {
    const { speed, clock } = this.#options;
    const playback = new Playback({ request, era, steps, speed, host: this, clock });
    this.#playing.add(playback);
    if (request !== undefined) this.#open.set(idKey(request.id), playback);
    // The sender of the request is not called back while it sends.
    queueMicrotask(() => playback.advance());
  }

  // ---- other messages of the client

  #notified(notification: Frame): void {
    if (notification.method === INITIALIZED) {
      const handshake = findHandshake(INITIALIZE, this.#options.finder);
      if (handshake !== undefined) this.#play(undefined, 'legacy', changesAfter(handshake.call));
    }
    if (notification.method !== CANCELED) return;
    const key = idKey(findCanceledId(notification)?.value);
    this.#listening.delete(key);
    const playback = this.#open.get(key);
    this.#open.delete(key);
    playback?.stop();
  }

  #answered(answer: Frame): void {
    const key = idKey(answer.id);
    const playback = this.#asking.get(key);
    this.#asking.delete(key);
    playback?.questionAnswered();
  }

  // ---- from the playbacks

  get isPaused(): boolean {
    return this.#isPaused;
  }

  deliver(frame: Frame): void {
    if (!this.#isClosed) this.#listener.received(frame);
  }

  ask(question: Frame, asking: Playback): JsonRpcId {
    this.#lastQuestion += 1;
    const id = this.#lastQuestion;
    this.#asking.set(idKey(id), asking);
    this.deliver(withId(question, id));
    return id;
  }

  /** In the modern era, only subscriptions are told of changes. */
  deliverChange(change: Frame, era: Era): void {
    if (era === 'legacy') return this.deliver(change);
    for (const { request, granted } of this.#listening.values()) {
      const told = tells(granted, change) ? rewriteSubscriptionId(change, idToken(request)) : undefined;
      if (told !== undefined) this.deliver(told);
    }
  }

  answered(playback: Playback): void {
    const { request } = playback;
    if (request !== undefined) this.#open.delete(idKey(request.id));
  }

  ended(playback: Playback): void {
    this.#playing.delete(playback);
    for (const id of playback.questions) this.#asking.delete(idKey(id));
  }
}

/** What the recorded server sent outside of calls after this one. */
function changesAfter({ after }: RecordedCall): readonly PlayedStep[] {
  return after.map(
    (step: RecordedStep): PlayedStep => (step.kind === 'notification' ? { ...step, kind: 'change' } : step),
  );
}

/** Returns true if a subscription is told of this change. */
function tells({ resourceSubscriptions, ...lists }: ListenFilter, change: Frame): boolean {
  switch (change.method) {
    case TOOLS_CHANGED:
      return lists.toolsListChanged;
    case PROMPTS_CHANGED:
      return lists.promptsListChanged;
    case RESOURCES_CHANGED:
      return lists.resourcesListChanged;
    case RESOURCE_UPDATED:
      return resourceSubscriptions.some((uri) => uri === readField(change, 'uri'));
    default:
      return false;
  }
}
