/**
 * What an observer sees of clients and calls: who, which server, what, how it ended, how large and how long. It sees no
 * payload, no credential and no session id.
 */
import type { ErrorCode } from '../errors.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { CALL_TOOL, INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { failureToldBy } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';

export type Transport = 'stdio' | 'streamable-http' | 'http-sse';

/** What is known of a client before it has said anything. */
export interface ClientOrigin {
  readonly transport: Transport;
  /** The authenticated caller; undefined: nobody is asked, for the client is at the other end of a pipe. */
  readonly principal: string | undefined;
  /** The name of the server that it is joined with. */
  readonly server: string;
}

/** What a client says of itself. Nobody has checked it. */
export interface ClientIntroduction {
  readonly era: Era;
  /** In a session the one that was agreed on, in a modern request the one it names; undefined: not known yet. */
  readonly revision: string | undefined;
  readonly name: string | undefined;
  readonly version: string | undefined;
}

export interface ObservedClient extends ClientOrigin, ClientIntroduction {}

/** One request of a client. */
export interface ObservedCall {
  readonly client: ObservedClient;
  readonly method: string;
  /** The tool that a `tools/call` names. */
  readonly tool: string | undefined;
  readonly requestBytes: number;
  /** By the clock of the bridge. */
  readonly openedAtMs: number;
}

/**
 * - `answered`: the server sent a result, or a subscription has ended.
 * - `error`: the server answered with an error, which has this code.
 * - `cancelled`: the client withdrew the request, or left before its answer.
 * - `failed`: the bridge could not have it answered, or refused it.
 */
export type CallOutcome =
  | { readonly kind: 'answered' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly code: ErrorCode };

export interface CallEnding {
  readonly outcome: CallOutcome;
  /** What was sent to the client for it: messages on the way, and the answer. */
  readonly bytes: number;
  readonly durationMs: number;
}

export type OnCallEnded = (ending: CallEnding) => void;
export type OnClientLeft = (reason: ErrorCode) => void;

/**
 * Sees every call and every client of the bridge. Called in the middle of a message's way, so no method may throw or take
 * long. What it wants to know of the end it is told by the function that it returns, which is called exactly once.
 */
export interface Observer {
  /** A request of a client was taken, or refused: then its end follows at once. */
  opened(call: ObservedCall): OnCallEnded | undefined;
  /**
   * A client has a session, or has sent the first modern request on its pipe. A modern client over HTTP is known by its
   * calls only: it neither connects nor leaves.
   */
  connected(client: ObservedClient): OnClientLeft | undefined;
  /** A client got no session. */
  refused(client: ClientOrigin, reason: ErrorCode): void;
}

/** Characters of a name that a peer has chosen which an observer is told. */
export const MAX_OBSERVED_LENGTH = 256;

function shownName(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, MAX_OBSERVED_LENGTH) : undefined;
}

export function toolOf(request: Frame): string | undefined {
  return request.method === CALL_TOOL ? shownName(readField(request, 'name')) : undefined;
}

/** How a legacy client introduces itself, once for its whole session. */
function introductionOf(initialize: Frame): ClientIntroduction {
  const { name, version } = asFields(readField(initialize, 'clientInfo')) ?? {};
  return { ...UNKNOWN_LEGACY, name: shownName(name), version: shownName(version) };
}

const UNKNOWN_LEGACY: ClientIntroduction = { era: 'legacy', revision: undefined, name: undefined, version: undefined };

/** How a modern client introduces itself, with each request anew. */
export function modernIntroductionOf(request: Frame): ClientIntroduction {
  const metadata = readRequestMetadata(request);
  const isReadable = !('fault' in metadata);
  const { name, version } = (isReadable && metadata.clientInfo) || {};
  const revision = isReadable ? shownName(metadata.revision) : undefined;
  return { era: 'modern', revision, name: shownName(name), version: shownName(version) };
}

/**
 * - `unknown`: the observer has not been told of the client.
 * - `connected`: it has, and is told when the client leaves.
 * - `left`: it is told nothing more.
 */
type PresenceState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'connected'; readonly onLeft: OnClientLeft | undefined }
  | { readonly kind: 'left' };

const UNKNOWN: PresenceState = { kind: 'unknown' };
const LEFT: PresenceState = { kind: 'left' };

/** The client of a session or a pipe as an observer is told of it. Reads nothing where nobody observes. */
export class ClientPresence {
  readonly #observer: Observer | undefined;
  readonly #origin: ClientOrigin;
  readonly #era: Era;
  /** What a legacy client has said of itself. */
  #introduction = UNKNOWN_LEGACY;
  #state: PresenceState = UNKNOWN;

  constructor(observer: Observer | undefined, origin: ClientOrigin, era: Era) {
    this.#observer = observer;
    this.#origin = origin;
    this.#era = era;
  }

  /** Who sends this request. The first one of a pipe is how its modern client comes. */
  describe(request: Frame): ObservedClient {
    if (this.#era === 'modern') {
      const client = { ...this.#origin, ...modernIntroductionOf(request) };
      this.#connected(client);
      return client;
    }
    const isIntroduction = request.method === INITIALIZE && this.#state.kind === 'unknown';
    if (isIntroduction) this.#introduction = introductionOf(request);
    return { ...this.#origin, ...this.#introduction };
  }

  /** A legacy client has a session, of this revision. */
  agreed(revision: string): void {
    if (this.#observer === undefined) return;
    this.#introduction = { ...this.#introduction, revision };
    this.#connected({ ...this.#origin, ...this.#introduction });
  }

  #connected(client: ObservedClient): void {
    if (this.#state.kind !== 'unknown') return;
    this.#state = { kind: 'connected', onLeft: this.#observer?.connected(client) };
  }

  /** May be called for a client that nobody was told of. */
  left(reason: ErrorCode): void {
    const state = this.#state;
    this.#state = LEFT;
    if (state.kind === 'connected') state.onLeft?.(reason);
  }
}

/** An error that a bridge has made in place of the server's answer, be it a translator of this one, counts as a failure. */
export function outcomeOf(answer: Frame): CallOutcome {
  if (answer.kind !== 'error') return ANSWERED;
  const failure = failureToldBy(answer);
  if (failure !== undefined) return { kind: 'failed', code: failure.code };
  const code = readField(answer, 'code');
  return { kind: 'error', code: typeof code === 'number' ? code : undefined };
}

export const ANSWERED: CallOutcome = { kind: 'answered' };
export const CANCELLED_CALL: CallOutcome = { kind: 'cancelled' };
