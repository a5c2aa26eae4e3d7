import { ByteQueue, RecentNames } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { INITIALIZE, INITIALIZED, SET_LEVEL, SUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import { type InitializeResult, readInitializeResult, refusalOf } from '../../relay/shared/legacy/initialize-result.ts';
import { type Frame, withParams } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../wire/write-message.ts';
import type { Member } from '../members.ts';

/** Messages that wait for a server while it starts. */
const WAITING_LIMITS = { maxItems: 1000, maxBytes: 16 * 1024 * 1024 };
/** Bytes that are sent to a server that does not read. Its further requests are refused, so that others' go on. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** Resources that are subscribed to again after a loss, and characters of their URIs. Later ones push out the first. */
const WATCHED_LIMITS = { count: 10_000, length: 1024 * 1024 };
/** Pauses between attempts to come back to a server whose resources the client watches. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;

/** Takes what a server says in a session. */
export interface MemberSessionOwner {
  /** The parameters of the client's `initialize`, as the client wrote them. */
  readonly introduction: Buffer;
  /** The log level that the client has set. */
  readonly level: string | undefined;
  readonly environment: Readonly<Record<string, string>> | undefined;
  readonly principal: string | undefined;
  /** The headers of the client's latest request. */
  readonly headers: Lane['headers'];
  /** A notification or a request of the server. `outer` is the client's call that it belongs to. */
  fromMember(session: MemberSession, frame: Frame, outer: Call | undefined): void;
  /** The server has answered the handshake. */
  opened(session: MemberSession, offer: InitializeResult): void;
  /** The session with the server is over. The next message opens another one. */
  ended(session: MemberSession): void;
  /** The server reads again. */
  drained(): void;
  /** True while the client does not take more. */
  readonly isPaused: boolean;
}

/** Carries one request to a server, and its answer back. */
export class MemberLane implements Lane {
  readonly isOpen = true;
  readonly headers: Lane['headers'];
  readonly traceHeaders: Lane['traceHeaders'];
  /** The client's call that the request stands for; undefined: the aggregate asks for itself. */
  readonly outer: Call | undefined;
  readonly answered: (answer: Frame) => void;

  constructor(headers: Lane['headers'], outer: Call | undefined, answered: (answer: Frame) => void) {
    this.headers = headers;
    this.traceHeaders = outer?.lane.traceHeaders;
    this.outer = outer;
    this.answered = answered;
  }
}

interface Waiting {
  readonly frame: Frame;
  readonly lane: MemberLane;
}

/**
 * - `idle`: no session; the next message opens one.
 * - `opening`: the server is starting, or the handshake is under way. Messages wait.
 * - `open`: messages pass.
 * - `closed`: for good.
 */
type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'closed'; readonly reason: BridgeError }
  | { readonly kind: 'opening'; readonly waiting: ByteQueue<Waiting>; relay: ClientListener | undefined }
  | { readonly kind: 'open'; readonly relay: ClientListener };

/**
 * A client of one server, for one session of the aggregate: it makes the handshake in the name of the aggregate's client, and
 * again when the server has ended. The server has the client's own ids, so that messages pass unchanged.
 */
export class MemberSession implements DownstreamPeer {
  readonly member: Member;
  readonly #owner: MemberSessionOwner;
  readonly #deps: Deps;
  #state: State = { kind: 'idle' };
  #offer: InitializeResult | undefined;
  /** Resources that the client watches at this server, as the client knows them, by the server's own URIs. */
  readonly #watched = new RecentNames<string>(WATCHED_LIMITS);
  #isFull = false;
  #unreadBytes = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelReturn: (() => void) | undefined;
  /** The callers of `open` that wait for the end of the handshake: one for each kind of list, and for each stored resource. */
  #awaiting: ((failure: BridgeError | undefined) => void)[] = [];
  /** Ids of the aggregate's own requests, which no client can guess. */
  readonly #idPrefix: string;
  #lastId = 0;

  constructor(member: Member, owner: MemberSessionOwner, deps: Deps) {
    this.member = member;
    this.#owner = owner;
    this.#deps = deps;
    this.#idPrefix = deps.randomId();
  }

  /** The server's answer to `initialize`, as it was last; undefined: it has never answered. */
  get offer(): InitializeResult | undefined {
    return this.#offer;
  }

  get isOpen(): boolean {
    return this.#state.kind === 'open';
  }

  has(capability: string): boolean {
    return asFields(this.#offer?.capabilities)?.[capability] !== undefined;
  }

  /** Opens the session if there is none. Resolves with the reason if that fails. */
  open(): Promise<BridgeError | undefined> {
    if (this.#state.kind === 'open') return Promise.resolve(undefined);
    if (this.#state.kind === 'closed') return Promise.resolve(this.#state.reason);
    const opened = new Promise<BridgeError | undefined>((resolve) => this.#awaiting.push(resolve));
    if (this.#state.kind === 'idle') this.#open();
    return opened;
  }

  #tellAwaiting(failure: BridgeError | undefined): void {
    const awaiting = this.#awaiting;
    this.#awaiting = [];
    for (const tell of awaiting) tell(failure);
  }

  // ---- what the client says

  /** Sends a request, or keeps it until the server is there. The lane gets the answer, be it an error of the bridge. */
  request(frame: Frame, lane: MemberLane): void {
    const state = this.#state;
    switch (state.kind) {
      case 'closed':
        return lane.answered(errorFrame(frame.id, rpcErrorOf(state.reason)));
      case 'open':
        return this.#send(state.relay, frame, lane);
      case 'idle':
        return this.#hold(this.#open(), { frame, lane });
      case 'opening':
        return this.#hold(state.waiting, { frame, lane });
    }
  }

  /** Asks for the aggregate itself. The answer is an error of the bridge if no server could be asked. */
  ask(method: string, params: object): Promise<Frame> {
    return new Promise((resolve) => {
      const { headers } = this.#owner;
      this.request(requestFrame(this.#nextId(), method, params), this.#laneFor(headers, undefined, resolve));
    });
  }

  /** Returns a lane for a request of the client, which passes only those headers that this server may see. */
  laneFor(outer: Call, answered: (answer: Frame) => void): MemberLane {
    return this.#laneFor(outer.lane.headers, outer, answered);
  }

  #laneFor(headers: Lane['headers'], outer: Call | undefined, answered: (answer: Frame) => void): MemberLane {
    const { environment } = this.#owner;
    return new MemberLane(this.member.viewOf({ headers, environment }).headers, outer, answered);
  }

  #nextId(): string {
    this.#lastId += 1;
    return `${this.#idPrefix}-${this.#lastId}`;
  }

  /** Sends a notification, or an answer to a question, unless there is no server that it could be for. */
  tell(frame: Frame, lane = this.#laneFor(this.#owner.headers, undefined, () => {})): void {
    if (this.#state.kind === 'open') this.#state.relay.fromClient(frame, lane);
    else if (this.#state.kind === 'opening') this.#withdraw(this.#state.waiting, lane);
  }

  /** A request that is withdrawn while it waits is not sent. */
  #withdraw(waiting: ByteQueue<Waiting>, lane: MemberLane): void {
    waiting.removeFirst((held) => held.lane === lane);
  }

  watch(own: string, shown: string): void {
    this.#watched.set(own, shown);
  }

  unwatch(own: string): void {
    this.#watched.delete(own);
  }

  /** Returns the URI by which the client knows a resource that it watches. */
  shownUri(own: string): string {
    return this.#watched.get(own) ?? own;
  }

  #hold(waiting: ByteQueue<Waiting>, held: Waiting): void {
    if (waiting.fits(held)) return waiting.add(held);
    const message = `The server ${this.member.name} is starting, and too many messages wait for it; try again later.`;
    held.lane.answered(errorFrame(held.frame.id, rpcErrorOf(new BridgeError('ERR_UPSTREAM_STARTING', message))));
  }

  #send(relay: ClientListener, frame: Frame, lane: MemberLane): void {
    if (this.#isFull) {
      if (this.#unreadBytes >= MAX_UNREAD_BYTES) {
        const message = `The server ${this.member.name} does not read what it is sent, so it takes no more calls.`;
        return lane.answered(errorFrame(frame.id, rpcErrorOf(new BridgeError('ERR_SESSION_BUSY', message))));
      }
      this.#unreadBytes += frame.bytes.length;
    }
    relay.fromClient(frame, lane);
  }

  // ---- the handshake

  #open(): ByteQueue<Waiting> {
    const waiting = new ByteQueue<Waiting>(WAITING_LIMITS, ({ frame }) => frame.bytes.length);
    const opening: State = { kind: 'opening', waiting, relay: undefined };
    this.#state = opening;
    this.member.start().then(
      ({ sessions }) => {
        if (this.#state !== opening) return;
        const { principal, environment, headers } = this.#owner;
        const view = this.member.viewOf({ headers, environment });
        try {
          const client = { transport: 'aggregate', era: 'legacy', principal, environment: view.environment } as const;
          opening.relay = sessions.open((_id, listener) => {
            opening.relay = listener;
            return this;
          }, client).relay;
        } catch (thrown) {
          return this.#lost(toBridgeError(thrown));
        }
        this.#shakeHands(opening);
      },
      (thrown: unknown) => {
        if (this.#state === opening) this.#lost(toBridgeError(thrown));
      },
    );
    return waiting;
  }

  #shakeHands(opening: State & { readonly kind: 'opening' }): void {
    const { headers, introduction } = this.#owner;
    const request = withParams(requestFrame(this.#nextId(), INITIALIZE, {}), introduction);
    const lane = this.#laneFor(headers, undefined, (answer) => {
      if (this.#state !== opening || opening.relay === undefined) return;
      const offer = readInitializeResult(answer);
      // The relay closes a session whose handshake was refused.
      if (offer === undefined) return this.#lost(refusalOf(this.member.name, answer));
      this.#opened(opening.relay, opening.waiting, offer);
    });
    opening.relay?.fromClient(request, lane);
  }

  #opened(relay: ClientListener, waiting: ByteQueue<Waiting>, offer: InitializeResult): void {
    this.#offer = offer;
    this.#state = { kind: 'open', relay };
    this.#pauseMs = FIRST_PAUSE_MS;
    this.tell(notificationFrame(INITIALIZED));
    const { level } = this.#owner;
    if (level !== undefined && this.has('logging')) void this.ask(SET_LEVEL, { level });
    for (const [uri] of this.#watched) void this.ask(SUBSCRIBE, { uri });
    this.#owner.opened(this, offer);
    this.#tellAwaiting(undefined);
    for (const { frame, lane } of waiting.takeAll()) this.request(frame, lane);
  }

  /** The session with the server is over, or could not begin. What waits for it gets the reason. */
  #lost(reason: BridgeError): void {
    const state = this.#state;
    if (state.kind !== 'opening' && state.kind !== 'open') return;
    this.#state = { kind: 'idle' };
    this.#isFull = false;
    this.#unreadBytes = 0;
    if (state.kind === 'opening') this.#giveUp(state, reason);
    this.#tellAwaiting(reason);
    this.#owner.ended(this);
    this.#owner.drained();
    this.#comeBack();
  }

  #giveUp({ waiting, relay }: State & { readonly kind: 'opening' }, reason: BridgeError): void {
    for (const { frame, lane } of waiting.takeAll()) lane.answered(errorFrame(frame.id, rpcErrorOf(reason)));
    relay?.clientClosed(reason);
  }

  /** Opens a session again for what the client watches there. */
  #comeBack(): void {
    if (this.#watched.size === 0 || this.#cancelReturn !== undefined) return;
    this.#cancelReturn = this.#deps.clock.after(this.#pauseMs, () => {
      this.#cancelReturn = undefined;
      this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
      if (this.#state.kind === 'idle' && this.#watched.size > 0) this.#open();
    });
  }

  // ---- what the server says: this is its client

  get isConnected(): boolean {
    return true;
  }

  get hasLeft(): boolean {
    return false;
  }

  send(frame: Frame, call?: Call): boolean {
    const lane = call?.lane instanceof MemberLane ? call.lane : undefined;
    if (frame.isResponse) lane?.answered(frame);
    else this.#owner.fromMember(this, frame, lane?.outer);
    return !this.#owner.isPaused;
  }

  release(): void {}

  negotiated(): void {}

  pause(): void {
    this.#isFull = true;
  }

  resume(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#unreadBytes = 0;
    this.#owner.drained();
  }

  /** The server has ended, or its relay. */
  close(reason: BridgeError): void {
    this.#lost(reason);
  }

  // ---- from the aggregate's session

  /** The client takes messages again. */
  clientDrained(): void {
    if (this.#state.kind === 'open') this.#state.relay.clientDrained();
  }

  /** Called when the aggregate's client is gone, or the server is not a part of the aggregate anymore. */
  end(reason: BridgeError): void {
    const state = this.#state;
    this.#state = { kind: 'closed', reason };
    this.#cancelReturn?.();
    this.#tellAwaiting(reason);
    if (state.kind === 'open') state.relay.clientClosed(reason);
    if (state.kind === 'opening') this.#giveUp(state, reason);
  }
}
