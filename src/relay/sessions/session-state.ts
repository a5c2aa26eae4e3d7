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

/** The part of the server's answer to `initialize` that is compared with another session's. */
export interface SessionOffer {
  readonly protocolVersion: string | undefined;
  /** Capabilities to announce changes. */
  readonly capabilities: Fields;
}

/**
 * Bytes of the parameters of an `initialize` that is kept for another session with the server. The limit is lower than
 * that of the request, because the parameters are kept as an object, which takes several times their bytes.
 */
export const MAX_KEPT_INITIALIZE_BYTES = 64 * 1024;
/** Characters of a stored session: the most that a session may hold, if each character is written as an escape. */
export const MAX_STORED_LENGTH = 8 * 1024 * 1024;
/** Characters of a revision or a level. A longer text is neither. */
const MAX_NAME_LENGTH = 64;
/** Raised when the stored form changes. A session that was stored under another version is not read. */
const STORED_VERSION = 2;

/**
 * The way in which another bridge continues a session.
 * - `same-session`: the server still knows the session, on any connection.
 * - `new-session`: the session ended with its connection, or the server keeps none. A new one is opened and restored to
 *   the same state.
 */
export type Continuation = 'same-session' | 'new-session';

/** Returns true for a request whose success has to be repeated in a new session. */
export function isStanding(method: string | undefined): boolean {
  return method === INITIALIZE || method === SET_LEVEL || method === SUBSCRIBE || method === UNSUBSCRIBE;
}

const UNHEARD: CallPositions = { moved: () => {}, over: () => {}, isResumable: () => false };

/**
 * A client's state in its session with a server: everything that another connection, session or bridge needs to
 * continue from there. `restore-session.ts` restores a new session to it.
 */
export class SessionState implements RestorableSession {
  /** The client's parameters. Undefined until the server has accepted them, and if they are too large to be kept. */
  initialize: Fields | undefined;
  /** Undefined until the server has accepted `initialize`. */
  offer: SessionOffer | undefined;
  #isInitialized = false;
  /** The level in the client's words. Undefined if the client has set none. */
  #level: string | undefined;
  readonly #subscribed = new SubscribedUris();
  #sessionId: string | undefined;
  /** Set by a link to a server that keeps sessions, before `initialize` counts as successful. */
  continuation: Continuation = 'new-session';
  /** True if another bridge continues the session. The session then ends here without notice to the server. */
  isHandedOver = false;
  /** Called after each change of the stored part. */
  changed: () => void = () => {};
  /** Receives the positions of this session's calls. */
  positions: CallPositions = UNHEARD;
  /** Calls that another bridge has sent to the server, with the event after which their answers continue. */
  readonly #resumable = new Map<JsonRpcId, string>();

  /** True if the server has got `notifications/initialized`. */
  get isInitialized(): boolean {
    return this.#isInitialized;
  }

  set isInitialized(isInitialized: boolean) {
    this.#isInitialized = isInitialized;
    this.changed();
  }

  /** The session id that the server gave. Undefined if the transport or the server has none. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  set sessionId(id: string | undefined) {
    this.#sessionId = id;
    this.changed();
  }

  /** Announces that the next request with this id was already sent to the server, and only waits for its answer. */
  resumes({ request, lastEventId }: ResumableCall): void {
    if (request.id !== undefined) this.#resumable.set(request.id, lastEventId);
  }

  /**
   * Returns the event after which the answer to this request continues. Undefined if the server has not got the request
   * yet.
   */
  takeResumption(request: Frame): string | undefined {
    if (this.#resumable.size === 0 || request.kind !== 'request' || request.id === undefined) return undefined;
    const lastEventId = this.#resumable.get(request.id);
    this.#resumable.delete(request.id);
    return lastEventId;
  }

  /**
   * Reserves space for a subscription before it is requested. Returns false if that exceeds the limit. Otherwise
   * `succeeded` or `failed` follows.
   */
  reserve(request: Frame): boolean {
    if (request.method !== SUBSCRIBE) return true;
    const uri = readField(request, 'uri');
    return typeof uri !== 'string' || this.#subscribed.add(uri);
  }

  /** Called when the server has granted a request of the client. A subscription beyond the limit is not remembered. */
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
    const isKept = request.bytes.length - request.payloadStart <= MAX_KEPT_INITIALIZE_BYTES;
    const params = isKept ? readPayload(request) : undefined;
    this.initialize = params && withoutTraceContext(params);
    this.offer = toOffer(protocolVersion, capabilities);
    this.changed();
  }

  /** Called when the server has refused a request, or its answer is unknown. */
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
   * Reads a stored session. All of it is checked, because anybody who can write to the store can choose the text.
   * Throws a BridgeError if the text is no session; its client has to open a new one.
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

/** Returns the requests that restore the state of a new session once it is open. */
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
