import { BridgeError } from '../../errors.ts';
import { withoutTraceContext } from '../../mcp/classify/trace-context.ts';
import { announcingCapabilities, changeNotifications } from '../../mcp/translate/change-notifications.ts';
import { isSessionId } from '../../mcp/vocabulary/headers.ts';
import { INITIALIZE, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields, parseSpan, readField, readPayload, showText } from '../../mcp/vocabulary/payload.ts';
import { SubscribedUris } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import type { RestorableSession, Wish } from './restore-session.ts';
import type { CallPositions, ResumableCall } from './resumable-call.ts';

/** What the server answered to `initialize`, as far as another session is compared with it. */
export interface SessionOffer {
  readonly protocolVersion: string | undefined;
  /** Those that announce changes. */
  readonly capabilities: Fields;
}

/** Bytes of the parameters of `initialize`; they are kept as objects, as long as the session. */
export const MAX_INITIALIZE_BYTES = 64 * 1024;
/** Characters of a stored session: as much as a session may hold, each of them written as an escape. */
export const MAX_STORED_LENGTH = 8 * 1024 * 1024;
/** Characters of a revision or a level; a longer text is neither. */
const MAX_NAME_LENGTH = 64;
/** Grows when the stored form changes; what was stored under another version is not read. */
const STORED_VERSION = 2;

/**
 * How another bridge goes on with a session.
 * - `same-session`: the server knows it still, over whatever connection.
 * - `new-session`: it ended with its connection, or the server keeps none. Another is opened and brought to its state.
 */
export type Continuation = 'same-session' | 'new-session';

/** Requests whose success another session has to be told of. */
export function isStanding(method: string | undefined): boolean {
  return method === INITIALIZE || method === SET_LEVEL || method === SUBSCRIBE || method === UNSUBSCRIBE;
}

const UNHEARD: CallPositions = { moved: () => {}, over: () => {}, isResumable: () => false };

/**
 * Where a client stands in its session with a server: all that another connection, another session or another bridge
 * needs to go on from there. `restore-session.ts` brings a new session to it.
 */
export class SessionState implements RestorableSession {
  /** The client's parameters; undefined until the server has accepted them, and where they are too large to be kept. */
  initialize: Fields | undefined;
  /** Undefined until then. */
  offer: SessionOffer | undefined;
  #isInitialized = false;
  /** The level as the client gave it; undefined: it gave none. */
  #level: string | undefined;
  readonly #subscribed = new SubscribedUris();
  #sessionId: string | undefined;
  /** Set by whoever opens the session at the server, before it is told to have succeeded. */
  continuation: Continuation = 'same-session';
  /** Another bridge goes on with the session: here it ends without the server being told so. */
  isHandedOver = false;
  /** Called after each change of what is stored. */
  changed: () => void = () => {};
  /** Told of the calls of this session. */
  positions: CallPositions = UNHEARD;
  /** Calls that another bridge has sent to the server: after which event their answers go on. */
  readonly #resumable = new Map<JsonRpcId, string>();

  /** The server has been told `notifications/initialized`. */
  get isInitialized(): boolean {
    return this.#isInitialized;
  }

  set isInitialized(isInitialized: boolean) {
    this.#isInitialized = isInitialized;
    this.changed();
  }

  /** The server's name of the session; undefined where the transport or the server has none. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  set sessionId(id: string | undefined) {
    this.#sessionId = id;
    this.changed();
  }

  /** The next request with this id is one that the server has already, and that waits for its answer. */
  resumes({ request, lastEventId }: ResumableCall): void {
    if (request.id !== undefined) this.#resumable.set(request.id, lastEventId);
  }

  /** The event after which the answer to this request goes on; undefined: the server does not have it yet. */
  takeResumption(request: Frame): string | undefined {
    if (this.#resumable.size === 0 || request.kind !== 'request' || request.id === undefined) return undefined;
    const lastEventId = this.#resumable.get(request.id);
    this.#resumable.delete(request.id);
    return lastEventId;
  }

  /** False: it is a subscription beyond the limit. Else `succeeded` or `failed` follows. */
  reserve(request: Frame): boolean {
    if (request.method !== SUBSCRIBE) return true;
    const uri = readField(request, 'uri');
    return typeof uri !== 'string' || this.#subscribed.add(uri);
  }

  /** The server did what the client asked for. A subscription beyond the limit is not remembered. */
  succeeded(request: Frame, answer: Frame): void {
    switch (request.method) {
      case INITIALIZE:
        return this.#opened(request, readPayload(answer) ?? {});
      case SET_LEVEL:
        this.#level = toName(readField(request, 'level'));
        return this.changed();
      case SUBSCRIBE:
        this.reserve(request);
        return this.changed();
      case UNSUBSCRIBE:
        this.#subscribed.delete(showText(readField(request, 'uri')));
        this.changed();
    }
  }

  #opened(request: Frame, { protocolVersion, capabilities }: Fields): void {
    const isKept = request.bytes.length - request.payloadStart <= MAX_INITIALIZE_BYTES;
    const params = isKept ? readPayload(request) : undefined;
    this.initialize = params && withoutTraceContext(params);
    this.offer = toOffer(protocolVersion, capabilities);
    this.changed();
  }

  /** The server refused, or nobody knows. */
  failed(request: Frame): void {
    if (request.method === SUBSCRIBE) this.#subscribed.delete(showText(readField(request, 'uri')));
  }

  wishes(): readonly Wish[] {
    return wishesOf(this.#level, this.#subscribed);
  }

  settled(wish: Wish, isGranted: boolean): void {
    if (isGranted) return;
    if (wish.method === SUBSCRIBE) this.#subscribed.delete(wish.params.uri);
    else this.#level = undefined;
    this.changed();
  }

  missed(): readonly Frame[] {
    return changeNotifications(this.offer?.capabilities, [...this.#subscribed]);
  }

  toJSON(): object {
    return {
      version: STORED_VERSION,
      initialize: this.initialize,
      offer: this.offer,
      continuation: this.continuation,
      isInitialized: this.isInitialized,
      level: this.#level,
      subscriptions: [...this.#subscribed],
      sessionId: this.sessionId,
    };
  }

  /**
   * The session that was stored as this text. Whoever can write to the store chooses it, so all of it is checked.
   * Throws a BridgeError when it is none: its client has to open a new session.
   */
  static from(json: string): SessionState {
    const text = Buffer.from(json.length <= MAX_STORED_LENGTH ? json : '');
    const stored = asFields(parseSpan(text, { start: 0, end: text.length }));
    check(stored !== undefined, 'it is no JSON object within the limits');
    const { version, initialize, offer, continuation, isInitialized, level, subscriptions, sessionId } = stored;
    check(version === STORED_VERSION, `its version is not ${STORED_VERSION}`);
    const state = new SessionState();
    state.initialize = asFields(initialize);
    check(state.initialize === initialize, 'initialize is no object');
    const fields = asFields(offer);
    state.offer = fields && toOffer(fields.protocolVersion, fields.capabilities);
    check(state.offer?.protocolVersion === fields?.protocolVersion && fields === offer, 'offer is none');
    check(continuation === 'same-session' || continuation === 'new-session', 'continuation is none');
    state.continuation = continuation;
    check(isInitialized === false || (isInitialized === true && fields !== undefined), 'isInitialized does not fit');
    state.isInitialized = isInitialized;
    state.#level = toName(level);
    check(state.#level === level, `level is no text of at most ${MAX_NAME_LENGTH} characters`);
    check(
      Array.isArray(subscriptions) &&
        subscriptions.every((uri) => typeof uri === 'string' && state.#subscribed.add(uri)),
      'subscriptions is no list of texts, or too long',
    );
    check(sessionId === undefined || isSessionId(sessionId), 'sessionId is none');
    state.sessionId = sessionId;
    return state;
  }
}

/** What a new session is asked for, once it is open. */
export function wishesOf(level: string | undefined, uris: Iterable<string>): readonly Wish[] {
  const subscriptions = [...uris].map((uri): Wish => ({ method: SUBSCRIBE, params: { uri } }));
  return level === undefined ? subscriptions : [{ method: SET_LEVEL, params: { level } }, ...subscriptions];
}

function toOffer(protocolVersion: unknown, capabilities: unknown): SessionOffer {
  return { protocolVersion: toName(protocolVersion), capabilities: announcingCapabilities(capabilities) };
}

function toName(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= MAX_NAME_LENGTH ? value : undefined;
}

function check(isFit: boolean, fault: string): asserts isFit {
  if (!isFit) throw new BridgeError('ERR_SESSION_UNKNOWN', `The stored session cannot be used: ${fault}.`);
}
