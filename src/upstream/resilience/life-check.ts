/**
 * Two ways to find out that the server of a connection does not live anymore, although the connection is open: pings
 * after silence, and a question once a call was given up in silence. See docs/internals/decisions/0015-hung-servers.md.
 * Without an answer to a ping, the sender may consider the connection stale and end it.
 * [spec 2025-11-25 basic/utilities/ping#behavior-requirements]
 */
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { createLifeQuestion } from '../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { CANCELED, DISCOVER, INITIALIZED, PING } from '../../mcp/vocabulary/methods.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { Call, type Lane } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Connection, CreateLifeCheck, LifeCheck } from '../connection.ts';

/**
 * The share of its timeout that a call certainly waits for the server, since the request arrives there a little later.
 */
const SHARE_OF_TIMEOUT = 0.9;

interface LifeCheckOptions {
  /** The name of the server in the log. */
  readonly name: string;
  /** Silence allowed to a call. */
  readonly requestTimeoutMs: number;
  readonly deps: Deps;
}

// ---- pings after silence

/** Pings without an answer after which the server counts as gone. */
const MAX_MISSED_PINGS = 2;
/** Prefix of the ids of pings. No client's counter produces such an id. */
const PING_ID_PREFIX = 'mcp-portage-ping-';
/** Completes "did not answer 2 pings in a row …". */
const NOR_CALLS = ', nor the calls that waited meanwhile';
/** No client waits for the answer to a ping. */
const NO_LANE: Lane = { isOpen: false };

export interface PingOptions extends LifeCheckOptions {
  /** Silence after which a ping is sent, and also the time for its answer. */
  readonly idleMs: number;
}

/** Facts about one server that all its connections have found out. */
interface PingedServer {
  /**
   * True if the server has answered a ping. The silence of a server that never does so has another reason than its end.
   */
  answersPings: boolean;
  hasWarned: boolean;
}

/**
 * Pings a server that has been silent for a while. Pings keep the connection open through proxies and routers, and show
 * if the other end has disappeared without closing it, such as a laptop that slept or a router that lost its state. The
 * modern era has no pings, and no handshake after which they could begin. [spec 2025-11-25 basic/utilities/ping]
 */
export function pingWhenSilent(options: PingOptions): CreateLifeCheck {
  const server: PingedServer = { answersPings: false, hasWarned: false };
  return (connection, session) => {
    const pings = new Pings(connection, server, options);
    // The session is past its handshake.
    if (session?.isInitialized === true) pings.begin();
    return pings;
  };
}

class Pings implements LifeCheck {
  readonly #connection: Connection;
  readonly #server: PingedServer;
  readonly #options: PingOptions;
  #stop: (() => void) | undefined;
  #lastHeardMs: number;
  #pings = 0;
  /** The id of the ping that is not answered yet. */
  #open: string | undefined;
  #missed = 0;
  /** Time that calls have waited before they were given up, while nothing was heard from the server. */
  #unansweredMs = 0;
  #countedUntilMs = Number.NEGATIVE_INFINITY;
  #isPaused = false;

  constructor(connection: Connection, server: PingedServer, options: PingOptions) {
    this.#connection = connection;
    this.#server = server;
    this.#options = options;
    this.#lastHeardMs = options.deps.clock.now();
  }

  begin(): void {
    const { deps, idleMs } = this.#options;
    this.#stop ??= deps.clock.every(idleMs, () => this.#look());
  }

  sent(frame: Frame, call: Call | undefined): void {
    // Before the handshake is done, the server expects no pings.
    if (frame.method === INITIALIZED) this.begin();
    if (frame.method === CANCELED && call !== undefined) this.#givenUp(call);
  }

  /** Counts the time that a call has waited in vain. Time in which several calls waited counts once. */
  #givenUp({ openedAtMs }: Call): void {
    const nowMs = this.#options.deps.clock.now();
    this.#unansweredMs += nowMs - Math.max(openedAtMs, this.#lastHeardMs, this.#countedUntilMs);
    this.#countedUntilMs = nowMs;
  }

  #look(): void {
    const { deps, idleMs } = this.#options;
    const nowMs = deps.clock.now();
    if (this.#isPaused || nowMs - this.#lastHeardMs < idleMs) return;
    if (this.#open !== undefined) this.#missed += 1;
    if (this.#missed >= MAX_MISSED_PINGS) {
      if (this.#server.answersPings) return this.#giveUp('');
      if (this.#hasAnsweredNoCall) return this.#giveUp(NOR_CALLS);
    }
    if (this.#missed === MAX_MISSED_PINGS) this.#noteUnanswered();
    this.#pings += 1;
    this.#open = `${PING_ID_PREFIX}${this.#pings}`;
    this.#connection.ask(requestFrame(this.#open, PING), new Call(this.#open, PING, NO_LANE, undefined, nowMs));
  }

  /**
   * True if the server counts as gone although it has never answered a ping. Such a server may still answer calls. It
   * is gone if calls were given up that together waited for as long as one call may be silent.
   */
  get #hasAnsweredNoCall(): boolean {
    const { requestTimeoutMs } = this.#options;
    return requestTimeoutMs > 0 && this.#unansweredMs >= SHARE_OF_TIMEOUT * requestTimeoutMs;
  }

  /**
   * Logs that pings are not answered. The server may be gone, or answer calls but no pings, and is not restarted for
   * the latter.
   */
  #noteUnanswered(): void {
    if (this.#server.hasWarned) return;
    this.#server.hasWarned = true;
    const { name, deps } = this.#options;
    const message = `${name} has not answered any ping so far; its connections are kept until calls get no answer either. --keep-alive 0 sends no pings`;
    deps.log.warn(message);
  }

  #giveUp(besides: string): void {
    const { name, deps } = this.#options;
    const message = `${name} did not answer ${MAX_MISSED_PINGS} pings in a row${besides}; its connection was given up.`;
    const reason = new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping' } });
    // The transport has not noticed the end, so it is logged here.
    deps.log.warn({ code: reason.code }, message);
    this.#connection.giveUp(reason);
  }

  /** An error is an answer too, and shows that the server is alive. */
  takes(frame: Frame, call: Call | undefined): boolean {
    this.#lastHeardMs = this.#options.deps.clock.now();
    this.#unansweredMs = 0;
    this.#missed = 0;
    const id = call?.id ?? frame.id;
    if (!frame.isResponse || typeof id !== 'string' || !id.startsWith(PING_ID_PREFIX)) return false;
    if (id === this.#open) this.#open = undefined;
    this.#server.answersPings = true;
    return true;
  }

  paused(): void {
    this.#isPaused = true;
  }

  resumed(): void {
    this.#isPaused = false;
    this.#lastHeardMs = this.#options.deps.clock.now();
  }

  ended(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}

// ---- a question after a call was given up

/** A timer that is this late shows that the bridge itself stood still, and perhaps the server with it. */
const LATE_MS = 1000;
/** Prefix of the ids of these questions. No other request on a connection has such an id. */
const QUESTION_ID_PREFIX = 'mcp-portage-alive-';

export interface QuestionOptions extends LifeCheckOptions {
  /** Time for a sign of life after a silent server was asked. Then it counts as hung. */
  readonly hangTimeoutMs: number;
  /** The era of the server. */
  readonly era: Era;
  /** The bridge's description of itself, for its questions. */
  readonly clientInfo: Implementation;
}

/**
 * Ends a process that hangs, because the clients that share it cannot. A call is given up when it times out or its
 * client withdraws it. If nothing has come from the process by then for as long as a call may be silent, the process is
 * asked a question. Any output shows that it is alive: a message, an error, a byte on stderr. Without any, the process
 * is ended, and its clients are treated as if it had exited.
 */
export function askWhenHanging(options: QuestionOptions): CreateLifeCheck {
  return (connection) => new HangQuestion(connection, options);
}

class HangQuestion implements LifeCheck {
  readonly #connection: Connection;
  readonly #options: QuestionOptions;
  /**
   * Time of the first request since the process was last heard from, and the value of `lastHeardMs` at that request.
   */
  #waitingSinceMs = Number.NEGATIVE_INFINITY;
  #lastHeardThenMs: number | undefined;
  #questions = 0;
  /** Cancels the timer of the open question. Undefined if no question is open. */
  #cancelVerdict: (() => void) | undefined;
  #isPaused = false;

  constructor(connection: Connection, options: QuestionOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** Undefined if the connection has no process, or none yet. */
  get #lastHeardMs(): number | undefined {
    return this.#connection.process?.lastHeardMs;
  }

  sent(frame: Frame): void {
    if (frame.kind === 'request') this.#noteRequest();
    else if (frame.method === CANCELED) this.#givenUp();
  }

  #noteRequest(): void {
    const lastHeardMs = this.#lastHeardMs;
    if (lastHeardMs === this.#lastHeardThenMs) return;
    this.#lastHeardThenMs = lastHeardMs;
    this.#waitingSinceMs = this.#options.deps.clock.now();
  }

  #givenUp(): void {
    const lastHeardMs = this.#lastHeardMs;
    if (lastHeardMs === undefined || this.#isPaused || this.#cancelVerdict !== undefined) return;
    const { requestTimeoutMs, deps } = this.#options;
    const silentMs = deps.clock.now() - Math.max(lastHeardMs, this.#waitingSinceMs);
    if (silentMs >= SHARE_OF_TIMEOUT * requestTimeoutMs) this.#ask(silentMs);
  }

  #ask(silentMs: number): void {
    const { name, era, clientInfo, deps } = this.#options;
    const question = era === 'legacy' ? PING : DISCOVER;
    deps.log.info(
      `server "${name}" has said nothing for ${seconds(silentMs)}; sending ${question} to see if it is alive`,
    );
    this.#questions += 1;
    this.#awaitLife(deps.clock.now());
    this.#connection.ask(createLifeQuestion({ era, id: `${QUESTION_ID_PREFIX}${this.#questions}`, clientInfo }));
  }

  #awaitLife(askedMs: number): void {
    const { hangTimeoutMs, deps } = this.#options;
    const dueMs = deps.clock.now() + hangTimeoutMs;
    this.#cancelVerdict = deps.clock.after(hangTimeoutMs, () => {
      this.#cancelVerdict = undefined;
      const lastHeardMs = this.#lastHeardMs;
      if (lastHeardMs === undefined || lastHeardMs >= askedMs) return;
      if (deps.clock.now() - dueMs >= LATE_MS) this.#awaitLife(askedMs);
      else this.#giveUp(lastHeardMs);
    });
  }

  #giveUp(lastHeardMs: number): void {
    const { name, deps } = this.#options;
    const silentMs = deps.clock.now() - Math.max(lastHeardMs, this.#waitingSinceMs);
    const message =
      `Server "${name}" hangs: for ${seconds(silentMs)} it has said nothing while calls waited, ` +
      'nor when it was asked whether it is alive; it was ended. ' +
      'Raise --request-timeout if it works that long without a word; --hang-timeout 0 lets it be.';
    const reason = new BridgeError('ERR_UPSTREAM_HUNG', message);
    deps.log.warn({ code: reason.code }, message);
    this.#connection.giveUp(reason);
  }

  #dropQuestion(): void {
    this.#cancelVerdict?.();
    this.#cancelVerdict = undefined;
  }

  takes({ isResponse, id }: Frame): boolean {
    const isAsked = this.#cancelVerdict !== undefined;
    if (isAsked) this.#dropQuestion();
    if (!isResponse) return false;
    // An error without an id may answer the bridge's question, and is then for no client.
    return id === undefined ? isAsked : typeof id === 'string' && id.startsWith(QUESTION_ID_PREFIX);
  }

  paused(): void {
    this.#isPaused = true;
    this.#dropQuestion();
  }

  resumed(): void {
    this.#isPaused = false;
  }

  ended(): void {
    this.#dropQuestion();
  }
}

function seconds(durationMs: number): string {
  return `${Math.ceil(durationMs / 1000)} s`;
}
