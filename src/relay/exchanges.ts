import { type CapacityShare, SharedCapacity } from '../collections/shared-capacity.ts';
import type { Clock } from '../deps.ts';
import { BridgeError, MAY_BE_FRAMED } from '../errors.ts';
import { findProgressToken } from '../mcp/classify/correlators.ts';
import { withTraceContext } from '../mcp/classify/trace-context.ts';
import { META_SUBSCRIPTION_ID } from '../mcp/vocabulary/meta.ts';
import { CANCELLED, INITIALIZE, LIST_TOOLS, LISTEN } from '../mcp/vocabulary/methods.ts';
import { ERAS } from '../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../wire/frame.ts';
import { errorFrame, notificationFrame, resultFrame } from '../wire/write-message.ts';
import type { Observing } from './client-presence.ts';
import { Exchange, type Lane } from './exchange.ts';
import {
  ANSWERED,
  CANCELLED_CALL,
  type CallOutcome,
  deprecatedQuestionsOf,
  type EndCall,
  type ObservedClient,
  type Observer,
  outcomeOf,
  type RefuseRequest,
  type ServerSpeech,
  toolOf,
  wantsLogs,
} from './observer.ts';
import type { ToolFilter } from './tool-filter.ts';
import { type CallTrace, describeForTrace, isToolError, type Tracer } from './tracer.ts';

/** What open requests may hold: some links keep a request until it is answered. */
const MAX_OPEN_BYTES = 256 * 1024 * 1024;
/** Requests up to here are limited by their number, so that small calls go on when large ones are refused. */
const SMALL_REQUEST_BYTES = 16 * 1024;

const RETRY = { retryAfterMs: 1000 };

/** What time a call may take. Looked at now and then: no call has a timer of its own. */
export interface CallTimes {
  /** Silence; 0: no limit. */
  readonly requestTimeoutMs: number;
  /** From the request to its answer, whatever is heard meanwhile; 0 or absent: no limit. */
  readonly maxCallMs?: number | undefined;
}

export interface ExchangesOptions extends Observing {
  readonly clock: Clock;
  /** Calls that may be open. */
  readonly calls: CapacityShare;
  /** Bytes of large requests together, of which the one that exceeds it is still taken. */
  readonly bytes: CapacityShare;
  /** Hides tools from the clients; undefined: none is hidden. */
  readonly tools?: ToolFilter | undefined;
  /** Says why this request is not taken now, or undefined where it is; undefined itself: all are taken at any time. */
  readonly refusal: RefuseRequest | undefined;
}

/** The relay that runs an exchange: it routes the messages, and the exchange is opened and ended for it. */
export interface ExchangeOwner {
  /** Who sends this request. Asked only where somebody observes. */
  describe(request: Frame): ObservedClient;
  /** The exchange has just ended; the client has not been told yet. */
  ended(exchange: Exchange): void;
}

/** A call that took too long, and what its client is told. */
export interface TimedOut {
  readonly error: BridgeError;
  readonly answer: Frame;
}

/** What the exchanges of all servers together may hold. */
export class ExchangeCapacity {
  readonly #calls: SharedCapacity;
  readonly #bytes: SharedCapacity;

  /** @param maxCalls calls of all clients together that wait for an answer: each holds a connection, and work of a server */
  constructor(maxCalls: number, maxBytes = MAX_OPEN_BYTES) {
    this.#calls = new SharedCapacity(maxCalls);
    this.#bytes = new SharedCapacity(maxBytes);
  }

  /** Calls that are open, and how many may be. */
  get calls(): Pick<SharedCapacity, 'taken' | 'total'> {
    return this.#calls;
  }

  /** The part of one server. */
  share(): Pick<ExchangesOptions, 'calls' | 'bytes'> & { close(): void } {
    const calls = this.#calls.share();
    const bytes = this.#bytes.share();
    const close = (): void => {
      calls.close();
      bytes.close();
    };
    return { calls, bytes, close };
  }
}

/**
 * The one place where exchanges begin and end, for the sessions of legacy clients and for modern requests alike. It counts
 * them, so that all clients together stay within a limit, says when one has taken too long, makes the answers that the
 * bridge itself gives, and tells the observer. Whoever runs an exchange sends what is returned here.
 */
export class Exchanges implements Observing {
  readonly clock: Clock;
  readonly observer: Observer | undefined;
  readonly tracer: Tracer | undefined;
  readonly speech: ServerSpeech;
  readonly server: string;
  readonly #calls: CapacityShare;
  /** What the bytes of large requests are taken from. */
  readonly #bytes: CapacityShare;
  readonly #tools: ToolFilter | undefined;
  readonly #refusal: ExchangesOptions['refusal'];

  constructor({ clock, calls, bytes, tools, refusal, observer, tracer, speech, server }: ExchangesOptions) {
    this.clock = clock;
    this.#calls = calls;
    this.#bytes = bytes;
    this.#tools = tools;
    this.#refusal = refusal;
    this.observer = observer;
    this.tracer = tracer;
    this.speech = speech;
    this.server = server;
  }

  get size(): number {
    return this.#calls.taken;
  }

  /** Bytes of the large requests that are not answered yet. */
  get largeRequestBytes(): number {
    return this.#bytes.taken;
  }

  get maxOpen(): number {
    return this.#calls.total;
  }

  // ---- the beginning

  /** Why one more call, with this request, is refused; undefined: it is not. */
  refusalOf(request: Frame): BridgeError | undefined {
    const requestBytes = request.bytes.length;
    if (this.#calls.isFull) {
      const message = `${this.#calls.taken} calls of all clients together are unanswered, the most allowed here; wait for answers, or close subscriptions, before sending more.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    if (requestBytes > SMALL_REQUEST_BYTES && this.#bytes.isFull) {
      const message = `The unanswered requests of all clients together have ${this.#bytes.taken} bytes, and ${this.#bytes.total} are the most allowed here; wait for answers before sending more large ones.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    return this.#refusal?.(request);
  }

  /** The exchange of a request, which counts from `open` on. */
  create(request: Frame, lane: Lane): Exchange {
    const token = findProgressToken(request)?.value;
    const { id, method, bytes } = request;
    const exchange = new Exchange(id as JsonRpcId, method as string, lane, token, this.clock.now());
    exchange.requestBytes = bytes.length;
    return exchange;
  }

  /** Returns the request as it goes to the server: where calls are traced it says what it belongs to. */
  open(owner: ExchangeOwner, exchange: Exchange, request: Frame): Frame {
    this.#calls.take(1);
    if (exchange.requestBytes > SMALL_REQUEST_BYTES) this.#bytes.take(exchange.requestBytes);
    const observer = this.#observerOfCall();
    if (this.tracer === undefined) {
      if (observer !== undefined)
        exchange.onEnded = this.#observe(observer, owner.describe(request), request, undefined);
      return request;
    }
    const client = owner.describe(request);
    const trace = this.tracer.begin(describeForTrace(request, client, exchange.lane.traceHeaders));
    exchange.onEnded = this.#observe(observer, client, request, trace);
    return trace === undefined ? request : withTraceContext(request, trace.sent());
  }

  /** Returns the answer to a message that calls a hidden tool, which must not reach the server. Undefined: it may. */
  answerToHidden(message: Frame): Frame | undefined {
    const refusal = this.#tools?.refusalOf(message);
    return refusal && errorFrame(message.id === undefined ? undefined : idToken(message), refusal);
  }

  /** The answer to a request that is not taken. It was never open. */
  refuse(owner: ExchangeOwner, request: Frame, error: BridgeError): Frame {
    const answer = errorFrame(request.id, rpcErrorOf(error));
    const observer = this.#observerOfCall();
    if (this.tracer !== undefined || observer !== undefined) {
      const client = owner.describe(request);
      const trace = this.tracer?.begin(describeForTrace(request, client, undefined));
      const onEnded = this.#observe(observer, client, request, trace);
      const outcome = { kind: 'failed', code: error.code } as const;
      onEnded({ outcome, bytes: answer.bytes.length, durationMs: 0 }, answer);
    }
    return answer;
  }

  /** To be called once a call: an observer that looks at one call in so many counts how often it is asked. */
  #observerOfCall(): Observer | undefined {
    return this.observer?.seesCalls ? this.observer : undefined;
  }

  #observe(
    observer: Observer | undefined,
    client: ObservedClient,
    request: Frame,
    trace: CallTrace | undefined,
  ): EndCall {
    const onEnded = observer?.opened({
      client,
      method: request.method as string,
      tool: toolOf(request),
      requestBytes: request.bytes.length,
      openedAtMs: this.clock.now(),
      traceId: trace?.traceId,
    });
    // A legacy session has told of these features by itself.
    const tellsOfFeatures = ERAS[client.era].begins === 'any-request';
    const use = { server: this.server, client };
    if (tellsOfFeatures && observer !== undefined && wantsLogs(request)) observer.used('logging', use);
    return (ending, last) => {
      const asked = tellsOfFeatures && observer !== undefined && last !== undefined ? deprecatedQuestionsOf(last) : [];
      for (const feature of asked) observer?.used(feature, use);
      const ended = { ...ending, server: this.speech.spokenTo(client) };
      onEnded?.(ended);
      trace?.ended({ ...ended, isToolError: trace.isRecorded && isToolError(request.method, last) });
    };
  }

  // ---- the end

  /** The server has answered. Returns its answer under the request's id, by which the client knows what it is told about. */
  answer(owner: ExchangeOwner, exchange: Exchange, answer: Frame): Frame {
    exchange.settle();
    const named = answer.id === undefined ? withId(answer, exchange.id) : answer;
    const told = this.#tools !== undefined && exchange.method === LIST_TOOLS ? this.#tools.shown(named) : named;
    this.#closed(owner, exchange);
    if (exchange.onEnded !== undefined) this.#tell(exchange, outcomeOf(told), told);
    return told;
  }

  /** There will be no answer of the server. Returns the one that says why. */
  fail(owner: ExchangeOwner, exchange: Exchange, error: BridgeError): Frame {
    exchange.settle();
    return this.#failed(owner, exchange, error);
  }

  #failed(owner: ExchangeOwner, exchange: Exchange, error: BridgeError): Frame {
    const answer = errorFrame(exchange.id, rpcErrorOf(error));
    this.#closed(owner, exchange);
    if (exchange.onEnded !== undefined) this.#tell(exchange, { kind: 'failed', code: error.code }, answer);
    return answer;
  }

  /** The client has withdrawn its request, or waits for the answer elsewhere; here it gets none. */
  cancel(owner: ExchangeOwner, exchange: Exchange): void {
    exchange.cancel('client');
    this.#closed(owner, exchange);
    if (exchange.onEnded !== undefined) this.#tell(exchange, CANCELLED_CALL);
  }

  /** A subscription ends because the bridge does. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure] */
  endSubscription(owner: ExchangeOwner, exchange: Exchange): Frame {
    const { id } = exchange;
    return this.answer(
      owner,
      exchange,
      resultFrame(id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } }),
    );
  }

  /** A modern server has ended a subscription by the notification that the client gets, and does not answer it. */
  endedByServer(owner: ExchangeOwner, exchange: Exchange, notification: Frame): void {
    exchange.settle();
    this.#closed(owner, exchange);
    if (exchange.onEnded !== undefined) this.#tell(exchange, ANSWERED, notification);
  }

  #closed(owner: ExchangeOwner, exchange: Exchange): void {
    this.#calls.give(1);
    if (exchange.requestBytes > SMALL_REQUEST_BYTES) this.#bytes.give(exchange.requestBytes);
    owner.ended(exchange);
  }

  #tell(exchange: Exchange, outcome: CallOutcome, last?: Frame): void {
    const bytes = exchange.sentBytes + (last?.bytes.length ?? 0);
    exchange.onEnded?.({ outcome, bytes, durationMs: this.clock.now() - exchange.openedAtMs }, last);
  }

  // ---- time

  /** Something was heard of the call: its time begins anew. */
  heard(exchange: Exchange): void {
    exchange.lastActiveMs = this.clock.now();
  }

  /** Withdraws a call that has been silent, or open, for too long; undefined: it goes on. */
  timeOut(owner: ExchangeOwner, exchange: Exchange, nowMs: number, times: CallTimes): TimedOut | undefined {
    const error = overdue(exchange, nowMs, times);
    if (error === undefined) return undefined;
    exchange.cancel('timeout');
    return { error, answer: this.#failed(owner, exchange, error) };
  }
}

/** What the server is told of a call that it need not finish. */
export function withdrawal(exchange: Exchange, reason: string): Frame {
  return notificationFrame(CANCELLED, { requestId: exchange.id, reason });
}

/** How often what takes too long is looked for; shorter limits are checked more often. */
const MAX_SWEEP_MS = 1000;

/** How often to look so that nothing that has this limit is much too late; without a limit: infinity. */
export function sweepPeriodOf(limitMs: number): number {
  return limitMs === Number.POSITIVE_INFINITY ? limitMs : Math.max(10, Math.min(MAX_SWEEP_MS, limitMs / 4));
}

/** The shortest limit of a call; infinity: there is none. */
export function shortestOf({ requestTimeoutMs, maxCallMs = 0 }: CallTimes): number {
  return Math.min(requestTimeoutMs || Number.POSITIVE_INFINITY, maxCallMs || Number.POSITIVE_INFINITY);
}

const DRAIN_POLL_MS = 20;

/** Resolves when nothing is open any more, or after `graceMs`. */
export async function drained(clock: Clock, graceMs: number, hasOpenCalls: () => boolean): Promise<void> {
  const deadlineMs = clock.now() + graceMs;
  while (hasOpenCalls() && clock.now() < deadlineMs) {
    await new Promise<void>((resolve) => clock.after(DRAIN_POLL_MS, resolve));
  }
}

/**
 * Why a call has to end now; undefined: it may go on. While its client is being asked it may be silent, but not for ever.
 * A subscription may be: it is silent for as long as nothing changes.
 * [spec 2025-11-25 basic/lifecycle#timeouts] a maximum is enforced whatever progress is reported.
 */
function overdue(
  exchange: Exchange,
  nowMs: number,
  { requestTimeoutMs, maxCallMs = 0 }: CallTimes,
): BridgeError | undefined {
  const { method, openedAtMs, lastActiveMs, openQuestions } = exchange;
  if (method === LISTEN) return undefined;
  if (maxCallMs > 0 && nowMs - openedAtMs >= maxCallMs) return lengthError(method, maxCallMs);
  const isSilent = requestTimeoutMs > 0 && openQuestions === 0 && nowMs - lastActiveMs >= requestTimeoutMs;
  return isSilent ? silenceError(method, requestTimeoutMs) : undefined;
}

function silenceError(method: string, timeoutMs: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server did not answer ${method} within ${timeoutMs} ms and reported no progress; raise --request-timeout if it needs longer.${method === INITIALIZE ? ` ${MAY_BE_FRAMED}` : ''}`,
    { data: { phase: 'response', timeoutMs } },
  );
}

function lengthError(method: string, timeoutMs: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server did not finish ${method} within ${timeoutMs} ms, the most a call may take whatever progress it reports; raise --max-call-time if it needs longer, 0 is no limit.`,
    { data: { phase: 'call', timeoutMs } },
  );
}
