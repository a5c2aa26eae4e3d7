import { LinkedList } from '../../../collections/linked-list.ts';
import type { Clock, Deps } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { findRelatedTask } from '../../../mcp/classify/correlators.ts';
import { refuseInput } from '../../../mcp/classify/input-required.ts';
import { correctedDeclaration } from '../../../mcp/translate/capabilities.ts';
import { type LogLevel, severityOf } from '../../../mcp/vocabulary/log-levels.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { ELICIT, LIST_ROOTS, SET_LEVEL, TOOLS_CHANGED } from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { findRevision } from '../../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import { Exchange, type Lane } from '../../../relay/exchange.ts';
import type { ServerListener, UpstreamDialer, UpstreamLink } from '../../../relay/ports.ts';
import type { InitializeResult } from '../../../relay/shared/initialize-result.ts';
import { SharedServer } from '../../../relay/shared/shared-server.ts';
import type { SoleOwner } from '../../../relay/shared/sole-owner.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { skipValue } from '../../../wire/json/scan-json.ts';
import { errorFrame, requestFrame, resultFrame } from '../../../wire/write-message.ts';
import { RootsQuestions } from '../roots-questions.ts';
import { Elicitations } from '../url-elicitations.ts';

/** A server that is not back by then is not waited for any longer by those who only listen. */
export const RECONNECT_MS = 60_000;

/**
 * How it is known which call a request of the server belongs to. Where it is not, nobody is asked.
 * - `lease`: nothing says so, as on stdio; so a session has one call at a time that could be meant.
 * - `stream`: by the stream it comes on. A server that asks on another one, which is no call's, is met like one on stdio
 *   from then on.
 * - `none`: nothing says so, and all calls are in one process; only while one is open.
 */
export type Attribution = 'lease' | 'stream' | 'none';

export interface LegacySessionOptions {
  readonly dialer: UpstreamDialer;
  readonly deps: Deps;
  readonly handshakeTimeoutMs: number;
  readonly attribution: Attribution;
  /** The server is told that it talks to this client. */
  readonly clientInfo: Implementation;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers?: Lane['headers'];
  readonly capabilities: Fields;
  /** Nobody uses the session any more. */
  readonly onIdle: (session: LegacySession) => void;
  /** The server asked something in a call. */
  readonly onAsked: () => void;
  /** The server asked something that nothing tells the call of. */
  readonly onUnplaced: () => void;
  /** A call was given up that the server may still be at work on, and ask something in. */
  readonly onDoubtful: (session: LegacySession) => void;
}

/**
 * One session of a legacy server that serves one client's calls, all with the same capabilities: the server knows
 * exactly who calls and what can be asked.
 */
export class LegacySession implements SoleOwner {
  readonly #options: LegacySessionOptions;
  readonly #server: SharedServer;
  readonly #listeners = new LinkedList<ServerListener>();
  #users = 0;
  readonly roots: RootsQuestions;
  readonly elicitations: Elicitations;
  readonly #levelHold: LevelHold;
  /** The calls that run as tasks of the server, by its ids; kept by who makes them. */
  readonly tasks = new Map<JsonRpcId, Exchange>();
  /** As the server is told it: not all revisions have words for all of it. */
  #declared: Fields;
  /** Grows whenever the server may have other tools than before. */
  #toolsVersion = 0;
  #stopWaiting: (() => void) | undefined;
  readonly lane: Lane;
  #isClosed = false;

  constructor(options: LegacySessionOptions) {
    const { dialer, deps, handshakeTimeoutMs, clientInfo, headers } = options;
    this.#options = options;
    this.lane = { isOpen: true, headers };
    this.#declared = options.capabilities;
    this.roots = new RootsQuestions(deps.clock);
    this.elicitations = new Elicitations(deps.clock);
    this.#server = new SharedServer({
      dialer: borrowed(dialer),
      deps,
      prewarm: false,
      handshakeTimeoutMs,
      clientInfo,
      owner: this,
    });
    this.#levelHold = new LevelHold({ clock: deps.clock, dial: (listener) => this.#server.dial(listener) });
  }

  get capabilities(): Fields {
    return this.#declared;
  }

  get users(): number {
    return this.#users;
  }

  /** What the server said of itself; undefined while none serves. */
  get initializeResult(): InitializeResult | undefined {
    return this.#server.initializeResult;
  }

  get toolsVersion(): number {
    return this.#toolsVersion;
  }

  /** `left` is called once the link is closed. Throws a BridgeError when the server cannot be reached now. */
  take(listener: ServerListener, left?: () => void): UpstreamLink {
    const link = this.#server.dial(listener);
    const node = this.#listeners.add(listener);
    this.#users += 1;
    let isTaken = true;
    return {
      process: link.process,
      send: (frame, exchange) => link.send(frame, exchange),
      pause: () => link.pause(),
      resume: () => link.resume(),
      close: (reason) => {
        link.close(reason);
        if (!isTaken) return;
        isTaken = false;
        node.remove();
        this.#users -= 1;
        left?.();
        if (this.#users === 0 && !this.#isClosed) this.#options.onIdle(this);
      },
    };
  }

  /** A request that wanted this level leaves; others may follow. */
  holdLevel(level: LogLevel): void {
    if (this.initializeResult !== undefined) this.#levelHold.hold(level);
  }

  // ---- what the server says to nobody in particular

  redeclare({ protocolVersion }: InitializeResult): boolean {
    const revision = findRevision(protocolVersion)?.id;
    const corrected = revision && correctedDeclaration(this.#declared, revision);
    if (corrected === undefined) return false;
    this.#declared = corrected;
    return true;
  }

  refuse({ bytes, method, payloadStart }: Frame): RpcError | undefined {
    const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
    return refuseInput(this.#options.capabilities, method ?? '', params);
  }

  get knowsByStream(): boolean {
    return this.#options.attribution === 'stream';
  }

  callOf(question: Frame): Exchange | 'unknown' | undefined {
    const taskId = findRelatedTask(question);
    return taskId === undefined ? undefined : (this.tasks.get(taskId) ?? 'unknown');
  }

  asked(): void {
    this.#options.onAsked();
  }

  unplaced(): void {
    this.#options.onUnplaced();
  }

  /** In one process for all it would not help to leave the session, and nobody could be asked any more. */
  get mindsGivenUp(): boolean {
    return this.#options.attribution !== 'none' && isAskable(this.#options.capabilities);
  }

  doubtful(): void {
    this.#options.onDoubtful(this);
  }

  takeOrphan(question: Frame, reply: (answer: Frame) => void): void {
    switch (question.method) {
      case LIST_ROOTS:
        return this.roots.add(question, reply);
      case ELICIT:
        // Nobody is there to be asked; a client that is asked in vain says the same.
        return reply(resultFrame(0, { action: 'cancel' }));
      default:
        return reply(errorFrame(0, NO_CALL));
    }
  }

  /** A call that could be asked something is over: what is asked from now on belongs to no handshake any more. */
  callOver(): void {
    this.roots.callOver();
  }

  orphanWithdrawn(id: JsonRpcId): void {
    this.roots.withdrawn(id);
  }

  elicitationCompleted(elicitationId: string): void {
    this.elicitations.completed(elicitationId);
  }

  listChanged(method: string | undefined): void {
    if (method === TOOLS_CHANGED) this.#toolsVersion += 1;
  }

  served(): void {
    this.roots.served();
    this.#toolsVersion += 1;
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }

  lost(): void {
    this.roots.lost();
    this.#levelHold.close();
    this.#stopWaiting ??= this.#options.deps.clock.after(RECONNECT_MS, () => this.#dismiss());
  }

  #dismiss(): void {
    this.#stopWaiting = undefined;
    const reason = `${this.#server.name} ended and could not be started again within ${RECONNECT_MS} ms.`;
    for (const listener of this.#listeners.toArray())
      listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWaiting?.();
    this.roots.close();
    this.#levelHold.close();
    this.elicitations.close();
    return this.#server.close();
  }
}

function isAskable({ roots, sampling, elicitation }: Fields): boolean {
  return roots !== undefined || sampling !== undefined || elicitation !== undefined;
}

const NO_CALL: RpcError = {
  code: INTERNAL_ERROR,
  message: 'no call of the client is open that this request could belong to',
};

/** Several sessions use one dialer; it ends with the pool, not with one of them. */
function borrowed(dialer: UpstreamDialer): UpstreamDialer {
  return {
    name: dialer.name,
    dial: (listener) => dialer.dial(listener),
    readiness: () => dialer.readiness(),
    close: () => Promise.resolve(),
    killNow: () => {},
  };
}

/** Requests come in quick succession; a server is not told of each that it may be quieter again. */
export const LEVEL_HOLD_MS = 5000;
/** The quietest level there is; none turns log messages off. */
const QUIETEST: LogLevel = 'emergency';

export interface LevelHoldOptions {
  readonly clock: Clock;
  /** Opens a link to the server whose level is held. */
  readonly dial: (listener: ServerListener) => UpstreamLink;
}

/**
 * - `idle`: the level is what the clients want.
 * - `holding`: it stays what it was for those that have left.
 * - `releasing`: the server is told that they are gone.
 */
type HoldState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'holding'; readonly link: UpstreamLink; readonly level: LogLevel; readonly cancel: () => void }
  | { readonly kind: 'releasing'; readonly link: UpstreamLink; readonly exchange: Exchange };

const IDLE: HoldState = { kind: 'idle' };

/** Keeps the log level of a session's server for a moment after the last request that wanted it. */
export class LevelHold implements ServerListener {
  readonly #options: LevelHoldOptions;
  #state: HoldState = IDLE;

  constructor(options: LevelHoldOptions) {
    this.#options = options;
  }

  /** One that wanted this level leaves. */
  hold(level: LogLevel): void {
    const state = this.#state;
    const link = state.kind === 'idle' ? this.#options.dial(this) : state.link;
    const held = state.kind === 'holding' && severityOf(state.level) <= severityOf(level) ? state.level : level;
    if (state.kind === 'holding') state.cancel();
    const cancel = this.#options.clock.after(LEVEL_HOLD_MS, () => this.#release(link));
    this.#state = { kind: 'holding', link, level: held, cancel };
    if (state.kind !== 'holding' || state.level !== held) link.send(levelRequest(held), this.#exchange());
  }

  #release(link: UpstreamLink): void {
    const exchange = this.#exchange();
    this.#state = { kind: 'releasing', link, exchange };
    link.send(levelRequest(QUIETEST), exchange);
  }

  #exchange(): Exchange {
    return new Exchange('level', SET_LEVEL, { isOpen: true }, undefined, this.#options.clock.now());
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (this.#state.kind === 'releasing' && frame.isResponse && exchange === this.#state.exchange) this.close();
  }

  serverFault(): void {
    this.close();
  }

  serverDrained(): void {}

  serverClosed(_reason: BridgeError): void {
    this.close();
  }

  close(): void {
    const state = this.#state;
    this.#state = IDLE;
    if (state.kind === 'holding') state.cancel();
    if (state.kind !== 'idle') state.link.close(RELEASED);
  }
}

function levelRequest(level: LogLevel): Frame {
  return requestFrame('level', SET_LEVEL, { level });
}

const RELEASED = new BridgeError('ERR_SESSION_CLOSED', 'Nobody wants this log level any more.');
