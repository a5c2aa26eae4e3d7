import { type CapacityShare, SharedCapacity } from '../collections/shared-capacity.ts';
import type { Clock } from '../deps.ts';
import { BridgeError, MAY_BE_FRAMED } from '../errors.ts';
import { findProgressToken } from '../mcp/classify/correlators.ts';
import { withTraceContext } from '../mcp/classify/trace-context.ts';
import { limitTaskNotification, limitToolResult, withoutOutputSchemas } from '../mcp/translate/limit-results.ts';
import { META_SUBSCRIPTION_ID } from '../mcp/vocabulary/meta.ts';
import { CANCELED, INITIALIZE, LIST_TOOLS, LISTEN } from '../mcp/vocabulary/methods.ts';
import { ERAS } from '../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import { Frame, idToken, type JsonRpcId, withId } from '../wire/frame.ts';
import { errorFrame, notificationFrame, resultFrame } from '../wire/write-message.ts';
import { Call, type Lane } from './call.ts';
import type { Observing } from './client-presence.ts';
import type { MessageTaps } from './message-tap.ts';
import {
  ANSWERED,
  CANCELED_CALL,
  type CallOutcome,
  deprecatedQuestionsOf,
  type EndCall,
  type ObservedClient,
  type Observer,
  outcomeOf,
  type RefuseRequest,
  type ServerObserver,
  type ServerSpeech,
  toolOf,
  wantsLogs,
} from './observer.ts';
import type { ToolView } from './tool-view.ts';
import { type CallTrace, describeForTrace, type Tracer } from './tracer.ts';

/** Bytes of large open requests. The limit exists because some links keep a request until it is answered. */
const MAX_OPEN_BYTES = 256 * 1024 * 1024;
/**
 * Requests up to this size are limited in number only, so that small calls are still accepted while large ones are
 * refused.
 */
const SMALL_REQUEST_BYTES = 16 * 1024;

const RETRY = { retryAfterMs: 1000 };

/** Time limits of a call. They are checked periodically, since no call has a timer of its own. */
export interface CallTimes {
  /** Longest silence. 0 means no limit. */
  readonly requestTimeoutMs: number;
  /** Longest time from the request to its answer, whatever progress is reported. 0 or undefined mean no limit. */
  readonly maxCallTimeMs?: number | undefined;
}

export interface CallsOptions extends Observing {
  readonly clock: Clock;
  /** Number of calls that may be open. */
  readonly slots: CapacityShare;
  /** Bytes of all large requests together. The request that exceeds the limit is still taken. */
  readonly bytes: CapacityShare;
  /** The server's tools as its clients see them. Undefined if all tools are shown as they are. */
  readonly tools?: ToolView | undefined;
  /** Largest part of a tool's result; see `limitToolResult`. 0 or undefined mean no limit. */
  readonly maxResultBytes?: number | undefined;
  /** Returns why a request is not taken now, or undefined if it is. Without this function every request is taken. */
  readonly refusal: RefuseRequest | undefined;
  /** Undefined if nobody looks at the lists of tools. */
  readonly serverObserver?: ServerObserver | undefined;
}

/** Routes the messages of a call, and leaves opening and ending it to `Calls`. */
export interface CallOwner {
  /** The authenticated caller. Undefined for a client at the other end of a pipe. */
  readonly principal: string | undefined;
  /** Returns the sender of this request. Called only if a call is observed or traced. */
  describe(request: Frame): ObservedClient;
  /** Called when the call has just ended, before its client gets the answer. */
  ended(call: Call): void;
}

/** A call that took too long, and the answer for its client. */
export interface TimedOut {
  readonly error: BridgeError;
  readonly answer: Frame;
}

/** Capacity for the calls of all servers together. */
export class CallCapacity {
  readonly #slots: SharedCapacity;
  readonly #bytes: SharedCapacity;

  /** @param maxCalls unanswered calls of all clients together. Each holds a connection, and work of a server. */
  constructor(maxCalls: number, maxBytes = MAX_OPEN_BYTES) {
    this.#slots = new SharedCapacity(maxCalls);
    this.#bytes = new SharedCapacity(maxBytes);
  }

  /** Number of open calls, and of calls that may be open. */
  get slots(): Pick<SharedCapacity, 'taken' | 'total'> {
    return this.#slots;
  }

  /** Returns the share of one server. */
  share(): Pick<CallsOptions, 'slots' | 'bytes'> & { close(): void } {
    const slots = this.#slots.share();
    const bytes = this.#bytes.share();
    const close = (): void => {
      slots.close();
      bytes.close();
    };
    return { slots, bytes, close };
  }
}

/**
 * The one place where calls begin and end, for sessions of legacy clients and for modern requests alike. Calls are
 * counted here, so that all clients together stay within a limit. The answers of the bridge itself are made here,
 * timeouts are detected, and the observer is notified. The owner of a call sends the frames that are returned here.
 */
export class Calls implements Observing {
  readonly clock: Clock;
  readonly observer: Observer | undefined;
  readonly tracer: Tracer | undefined;
  readonly speech: ServerSpeech;
  readonly server: string;
  readonly taps: MessageTaps | undefined;
  readonly #slots: CapacityShare;
  /** Bytes of large requests. Small ones take nothing from them. */
  readonly #bytes: CapacityShare;
  readonly #tools: ToolView | undefined;
  /** 0 means no limit. */
  readonly #maxResultBytes: number;
  readonly #refusal: CallsOptions['refusal'];
  readonly #serverObserver: ServerObserver | undefined;

  constructor({ clock, slots, bytes, tools, maxResultBytes, refusal, serverObserver, ...observing }: CallsOptions) {
    const { observer, tracer, speech, server, taps } = observing;
    this.clock = clock;
    this.#slots = slots;
    this.#bytes = bytes;
    this.#tools = tools;
    this.#maxResultBytes = maxResultBytes ?? 0;
    this.#refusal = refusal;
    this.#serverObserver = serverObserver;
    this.observer = observer;
    this.tracer = tracer;
    this.speech = speech;
    this.server = server;
    this.taps = taps;
  }

  get size(): number {
    return this.#slots.taken;
  }

  /** Bytes of the large requests that are not answered yet. */
  get largeRequestBytes(): number {
    return this.#bytes.taken;
  }

  get maxOpen(): number {
    return this.#slots.total;
  }

  // ---- the beginning

  /** Returns why one more call, with this request, is refused. Undefined if it is not. */
  refusalOf(request: Frame): BridgeError | undefined {
    const requestBytes = request.bytes.length;
    if (this.#slots.isFull) {
      const message = `${this.#slots.taken} calls of all clients together are unanswered, the most allowed here; wait for answers, or close subscriptions, before sending more.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    if (requestBytes > SMALL_REQUEST_BYTES && this.#bytes.isFull) {
      const message = `The unanswered requests of all clients together have ${this.#bytes.taken} bytes, and ${this.#bytes.total} are the most allowed here; wait for answers before sending more large ones.`;
      return new BridgeError('ERR_SESSION_BUSY', message, RETRY);
    }
    return this.#refusal?.(request);
  }

  /** Makes the call of a request that has arrived. The call counts from `open` on. */
  receive(request: Frame, lane: Lane): Call {
    const token = findProgressToken(request)?.value;
    const { id, method, bytes } = request;
    const call = new Call(id as JsonRpcId, method as string, lane, token, this.clock.now());
    call.requestBytes = bytes.length;
    return call;
  }

  /**
   * Returns the request as it goes to the server, or an error that answers it in place of the server. Observers and
   * traces get the request as the client sent it, so that records name a tool as the client does.
   */
  open(owner: CallOwner, call: Call, request: Frame): Frame {
    const sent = this.#begin(owner, call, request);
    return this.#tools === undefined ? sent : this.toServer(owner, sent);
  }

  /** Returns the request. If calls are traced, the request carries the trace context. */
  #begin(owner: CallOwner, call: Call, request: Frame): Frame {
    this.#slots.take(1);
    if (call.requestBytes > SMALL_REQUEST_BYTES) this.#bytes.take(call.requestBytes);
    const observer = this.#observerOfCall();
    if (this.tracer === undefined) {
      if (observer !== undefined) call.onEnded = this.#observe(observer, owner.describe(request), request, undefined);
      return request;
    }
    const client = owner.describe(request);
    const trace = this.tracer.begin(describeForTrace(request, client, call.lane.traceHeaders));
    call.onEnded = this.#observe(observer, client, request, trace);
    return trace === undefined ? request : withTraceContext(request, trace.sent());
  }

  /**
   * Returns a message of a client as it goes to the server, or an error if it calls a tool that its client does not
   * see. The error answers a request; a notification has no answer and is dropped.
   */
  toServer(sender: Pick<CallOwner, 'principal'>, message: Frame): Frame {
    if (this.#tools === undefined) return message;
    const sent = this.#tools.toServer(message, sender.principal);
    return sent instanceof Frame ? sent : errorFrame(message.id === undefined ? undefined : idToken(message), sent);
  }

  /** Returns a request as its client sent it, from the request that went to the server. */
  asSent(request: Frame): Frame {
    return this.#tools === undefined ? request : this.#tools.asSent(request);
  }

  /** Returns the answer to a request that is not taken, and so was never open. */
  refuse(owner: Pick<CallOwner, 'describe'>, request: Frame, error: BridgeError): Frame {
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

  /** Called once per call, because an observer that samples calls counts how often this is read. */
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
    // The relay of a legacy session reports these features itself.
    const tellsOfFeatures = ERAS[client.era].begins === 'any-request';
    const use = { server: this.server, client };
    if (tellsOfFeatures && observer !== undefined && wantsLogs(request)) observer.used('logging', use);
    return (ending, last) => {
      const asked = tellsOfFeatures && observer !== undefined && last !== undefined ? deprecatedQuestionsOf(last) : [];
      for (const feature of asked) observer?.used(feature, use);
      const ended = { ...ending, server: this.speech.spokenTo(client) };
      onEnded?.(ended);
      trace?.ended(ended);
    };
  }

  // ---- the end

  /**
   * Ends a call with the server's answer. Returns that answer as its client gets it: with the request's id, by
   * which the client recognizes it, with the tools that the client sees, and within the limit of results.
   */
  answer(owner: CallOwner, call: Call, answer: Frame): Frame {
    call.settle();
    const named = answer.id === undefined ? withId(answer, call.id) : answer;
    const told = this.#asTold(owner, call.method, named);
    this.#closed(owner, call);
    if (call.onEnded !== undefined) this.#tell(call, outcomeOf(told, call.method), told);
    return told;
  }

  #asTold(owner: CallOwner, method: string, answer: Frame): Frame {
    if (method === LIST_TOOLS) return this.#listTools(owner, answer);
    return this.#maxResultBytes === 0 ? answer : limitToolResult(answer, method, this.#maxResultBytes);
  }

  /**
   * Returns the answer to `tools/list` with the tools that the client sees, and without promises that limited results
   * may break.
   */
  #listTools(owner: CallOwner, answer: Frame): Frame {
    const shown = this.#tools?.toClient(answer, owner.principal) ?? answer;
    const told = this.#maxResultBytes === 0 ? shown : withoutOutputSchemas(shown);
    if (told.kind === 'result') this.#serverObserver?.listedTools(told);
    return told;
  }

  /** Ends a call that gets no answer from the server. Returns an error answer with the reason. */
  fail(owner: CallOwner, call: Call, error: BridgeError): Frame {
    call.settle();
    return this.#failed(owner, call, error);
  }

  #failed(owner: CallOwner, call: Call, error: BridgeError): Frame {
    const answer = errorFrame(call.id, rpcErrorOf(error));
    this.#closed(owner, call);
    if (call.onEnded !== undefined) this.#tell(call, { kind: 'failed', code: error.code }, answer);
    return answer;
  }

  /**
   * Ends a call whose answer its client does not expect here, because the client has withdrawn the request or
   * waits for the answer elsewhere.
   */
  cancel(owner: CallOwner, call: Call): void {
    call.cancel('client');
    this.#closed(owner, call);
    if (call.onEnded !== undefined) this.#tell(call, CANCELED_CALL);
  }

  /**
   * Ends a subscription because the bridge ends. Returns its answer.
   * [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure]
   */
  endSubscription(owner: CallOwner, call: Call): Frame {
    const { id } = call;
    return this.answer(owner, call, resultFrame(id, { resultType: 'complete', _meta: { [META_SUBSCRIPTION_ID]: id } }));
  }

  /**
   * Ends a subscription that a modern server has ended by a notification and will not answer. The client gets that
   * notification.
   */
  endedByServer(owner: CallOwner, call: Call, notification: Frame): void {
    call.settle();
    this.#closed(owner, call);
    if (call.onEnded !== undefined) this.#tell(call, ANSWERED, notification);
  }

  #closed(owner: CallOwner, call: Call): void {
    this.#slots.give(1);
    if (call.requestBytes > SMALL_REQUEST_BYTES) this.#bytes.give(call.requestBytes);
    owner.ended(call);
  }

  #tell(call: Call, outcome: CallOutcome, last?: Frame): void {
    const bytes = call.sentBytes + (last?.bytes.length ?? 0);
    call.onEnded?.({ outcome, bytes, durationMs: this.clock.now() - call.openedAtMs }, last);
  }

  // ---- time

  /** Called for each message about a call. The time of silence starts again. */
  heard(call: Call): void {
    call.lastActiveMs = this.clock.now();
  }

  /** Returns a notification of a modern server as clients get it: within the limit, if it has the result of a task. */
  notification(frame: Frame): Frame {
    return this.#maxResultBytes === 0 ? frame : limitTaskNotification(frame, this.#maxResultBytes);
  }

  /** Withdraws a call that has been silent, or open, for too long. Undefined if the call goes on. */
  timeOut(owner: CallOwner, call: Call, nowMs: number, times: CallTimes): TimedOut | undefined {
    const error = overdue(call, nowMs, times);
    if (error === undefined) return undefined;
    call.cancel('timeout');
    return { error, answer: this.#failed(owner, call, error) };
  }
}

/** Returns the notification that tells the server that it need not finish a call. */
export function withdrawal(call: Call, reason: string): Frame {
  return notificationFrame(CANCELED, { requestId: call.id, reason });
}

/** Longest period between two checks for timeouts. Shorter limits are checked more often. */
const MAX_SWEEP_MS = 1000;

/** Returns the period of checks at which nothing exceeds this limit by much. Infinity if there is no limit. */
export function sweepPeriodOf(limitMs: number): number {
  return limitMs === Number.POSITIVE_INFINITY ? limitMs : Math.max(10, Math.min(MAX_SWEEP_MS, limitMs / 4));
}

/** Returns the shortest limit of a call. Infinity if there is none. */
export function shortestOf({ requestTimeoutMs, maxCallTimeMs = 0 }: CallTimes): number {
  return Math.min(requestTimeoutMs || Number.POSITIVE_INFINITY, maxCallTimeMs || Number.POSITIVE_INFINITY);
}

const DRAIN_POLL_MS = 20;

/** Resolves when no call is open anymore, or after `graceMs`. */
export async function drained(clock: Clock, graceMs: number, hasOpenCalls: () => boolean): Promise<void> {
  const deadlineMs = clock.now() + graceMs;
  while (hasOpenCalls() && clock.now() < deadlineMs) {
    await new Promise<void>((resolve) => clock.after(DRAIN_POLL_MS, resolve));
  }
}

/**
 * Returns why a call has to end now, or undefined if it may go on. A call whose client is being asked may be silent,
 * but not for ever. A subscription has no limit, because it is silent as long as nothing changes.
 * [spec 2025-11-25 basic/lifecycle#timeouts] a maximum is enforced whatever progress is reported.
 */
function overdue(
  call: Call,
  nowMs: number,
  { requestTimeoutMs, maxCallTimeMs = 0 }: CallTimes,
): BridgeError | undefined {
  const { method, openedAtMs, lastActiveMs, openQuestions } = call;
  if (method === LISTEN) return undefined;
  if (maxCallTimeMs > 0 && nowMs - openedAtMs >= maxCallTimeMs) return lengthError(method, maxCallTimeMs);
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
