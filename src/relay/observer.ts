/**
 * What an observer sees of clients and calls: who, which server, what, how it ended, how large and how long. It sees no
 * payload, no credential and no session id.
 */
import { type BridgeError, type ErrorCode, UNCLEAR } from '../errors.ts';
import { isAmbiguous, readToolName } from '../mcp/classify/ambiguity.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { CALL_TOOL, LIST_ROOTS, SAMPLE } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { failureToldBy } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';

export type Transport = DuplexTransport | 'streamable-http' | 'http-sse';

/** A connection that both ends keep, and on which each message says its era. */
export type DuplexTransport = 'stdio' | 'byte-stream' | 'websocket';

export function isDuplex(transport: Transport): transport is DuplexTransport {
  return transport === 'stdio' || transport === 'byte-stream' || transport === 'websocket';
}

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

/** What a server speaks, as far as it has been found out. */
export interface ObservedServer {
  readonly transport: Transport;
  readonly era: Era;
  /** Undefined: not known yet. */
  readonly revision: string | undefined;
}

/** What has been found out about a server, for those who are told of its calls. A server can speak both eras. */
export class ServerSpeech {
  readonly #spoken = new Map<Era, ObservedServer>();

  learn(server: ObservedServer): void {
    this.#spoken.set(server.era, server);
  }

  /** The later era first. */
  get all(): readonly ObservedServer[] {
    return (['modern', 'legacy'] as const).flatMap((era) => this.#spoken.get(era) ?? []);
  }

  /** What it speaks where this client is served: the client's own era if it can; undefined: nobody knows yet. */
  spokenTo({ era, revision }: Pick<ObservedClient, 'era' | 'revision'>): ObservedServer | undefined {
    const spoken = this.#spoken.get(era) ?? this.#spoken.get(era === 'legacy' ? 'modern' : 'legacy');
    // Client and server of one session of the legacy era have agreed on the revision.
    return spoken?.era === 'legacy' && era === 'legacy' ? { ...spoken, revision } : spoken;
  }
}

/** One request of a client. */
export interface ObservedCall {
  readonly client: ObservedClient;
  readonly method: string;
  /** The tool that a `tools/call` names. */
  readonly tool: string | undefined;
  readonly requestBytes: number;
  /** By the clock of the bridge. */
  readonly openedAtMs: number;
  /** The trace that it belongs to; undefined: calls are not traced. */
  readonly traceId: string | undefined;
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
  /** The server that the call was for; undefined: it could not be reached yet, so nobody knows what it speaks. */
  readonly server: ObservedServer | undefined;
}

/**
 * What the specification has deprecated and a client or server uses all the same. HTTP+SSE and old revisions are not
 * among them: every call says what its client speaks. [spec 2026-07-28 changelog; SEP-2577, SEP-2596]
 */
export type DeprecatedFeature = 'sampling' | 'roots' | 'logging' | 'batch' | 'dynamic-client-registration';

export type OnCallEnded = (ending: CallEnding) => void;
/**
 * Ends a call that is observed. Whoever does it need not know what the server speaks.
 * @param last the answer, or what stands in its place; undefined: the client gets none
 */
export type EndCall = (ending: Omit<CallEnding, 'server'>, last: Frame | undefined) => void;
export type OnClientLeft = (reason: ErrorCode) => void;

/**
 * Sees the clients of the bridge, and every call where it wants to. Called in the middle of a message's way, so no method
 * may throw or take long. What it wants to know of the end it is told by the function that it returns, which is called
 * exactly once.
 */
export interface Observer {
  /** Whether it is to be told of the call that begins now, for which it is asked once: nothing is read where nobody wants to know. */
  readonly seesCalls: boolean;
  /** A request of a client was taken, or refused: then its end follows at once. */
  opened(call: ObservedCall): OnCallEnded | undefined;
  /**
   * A client has a session, or has sent the first modern request on its pipe. A modern client over HTTP is known by its
   * calls only: it neither connects nor leaves.
   */
  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft | undefined;
  /** A client got no session. */
  refused(client: ClientOrigin, reason: ErrorCode): void;
  /** May be called often for one client. Undefined as client: it is the bridge that uses it, towards this server. */
  used(feature: DeprecatedFeature, by: { readonly server: string; readonly client: ObservedClient | undefined }): void;
}

/** Characters of a name that a peer has chosen which an observer is told. */
export const MAX_OBSERVED_LENGTH = 256;

export function shownName(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, MAX_OBSERVED_LENGTH) : undefined;
}

/** Says why a request is not taken, or undefined where it is. */
export type RefuseRequest = (request: Frame) => BridgeError | undefined;

/** Where each call is put on record: what is recorded must be what the server reads, and the tool it runs. */
export const refuseUnclear: RefuseRequest = (request) => {
  const isUnclear = isAmbiguous(request) || (request.method === CALL_TOOL && readToolName(request) === undefined);
  return isUnclear ? UNCLEAR : undefined;
};

export function toolOf(request: Frame): string | undefined {
  return shownName(readToolName(request));
}

/** What a modern request asks for that is deprecated. */
export function wantsLogs(request: Frame): boolean {
  const metadata = readRequestMetadata(request);
  return !('fault' in metadata) && metadata.logLevel !== undefined;
}

/** Answers of servers that ask their client something are small: larger ones are not looked through. */
const MAX_QUESTIONS_BYTES = 64 * 1024;
const QUESTIONS: readonly (readonly [DeprecatedFeature, string])[] = [
  ['sampling', JSON.stringify(SAMPLE)],
  ['roots', JSON.stringify(LIST_ROOTS)],
];

/** What is deprecated among the questions that a result of a modern server asks its client. */
export function deprecatedQuestionsOf({ kind, bytes }: Frame): readonly DeprecatedFeature[] {
  if (kind !== 'result' || bytes.length > MAX_QUESTIONS_BYTES || !bytes.includes('"input_required"')) return [];
  return QUESTIONS.flatMap(([feature, method]) => (bytes.includes(method) ? [feature] : []));
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
