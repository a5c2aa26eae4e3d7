/**
 * The interface of an observer of clients and calls. An observer gets who called which server, the method, the outcome,
 * sizes and times, but no payload, no credential and no session id.
 */
import { type BridgeError, type ErrorCode, UNCLEAR } from '../errors.ts';
import { isAmbiguous, readToolName } from '../mcp/classify/ambiguity.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { CALL_TOOL, LIST_ROOTS, SAMPLE } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { failureToldBy } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';

/** `aggregate`: not from outside, but by the aggregate, whose clients came by another transport. */
export type Transport = DuplexTransport | 'streamable-http' | 'http-sse' | 'aggregate';

/**
 * A transport with one connection for both directions, on which each message has its own era. `replay`: a recording, whose
 * server is in this process.
 */
export type DuplexTransport = 'stdio' | 'byte-stream' | 'websocket' | 'grpc' | 'mqtt' | 'replay';

export function isDuplex(transport: Transport): transport is DuplexTransport {
  return transport !== 'streamable-http' && transport !== 'http-sse' && transport !== 'aggregate';
}

/** Facts about a client that are known before its first message. */
export interface ClientOrigin {
  readonly transport: Transport;
  /**
   * The authenticated caller. Undefined if there is no authentication, because the client is at the other end of a
   * pipe.
   */
  readonly principal: string | undefined;
  /** The name of the server that the client is connected to. */
  readonly server: string;
}

/** A client's description of itself. It is not verified. */
export interface ClientIntroduction {
  readonly era: Era;
  /** The revision that a session has agreed on, or that a modern request names. Undefined while it is not known. */
  readonly revision: string | undefined;
  readonly name: string | undefined;
  readonly version: string | undefined;
}

export interface ObservedClient extends ClientOrigin, ClientIntroduction {}

/** The transport and revision of a server, as far as they have been detected. */
export interface ObservedServer {
  readonly transport: Transport;
  readonly era: Era;
  /** Undefined while it is not known. */
  readonly revision: string | undefined;
}

/** Detected facts about a server, for observers of its calls. A server can speak both eras. */
export class ServerSpeech {
  readonly #spoken = new Map<Era, ObservedServer>();

  learn(server: ObservedServer): void {
    this.#spoken.set(server.era, server);
  }

  /** Facts for each era that was detected, those of the modern era first. */
  get all(): readonly ObservedServer[] {
    return (['modern', 'legacy'] as const).flatMap((era) => this.#spoken.get(era) ?? []);
  }

  /**
   * Returns the facts for the era in which this client is served: the client's own if the server speaks it. Undefined
   * while nothing is known.
   */
  spokenTo({ era, revision }: Pick<ObservedClient, 'era' | 'revision'>): ObservedServer | undefined {
    const spoken = this.#spoken.get(era) ?? this.#spoken.get(era === 'legacy' ? 'modern' : 'legacy');
    // Client and server of a legacy session have agreed on one revision.
    return spoken?.era === 'legacy' && era === 'legacy' ? { ...spoken, revision } : spoken;
  }
}

/** A request of a client. */
export interface ObservedCall {
  readonly client: ObservedClient;
  readonly method: string;
  /** The name of the tool in a `tools/call`, as the client calls it. */
  readonly tool: string | undefined;
  readonly requestBytes: number;
  /** Time of the start, by the clock of the bridge. */
  readonly openedAtMs: number;
  /** The trace of the call. Undefined if calls are not traced. */
  readonly traceId: string | undefined;
}

/**
 * - `answered`: the server sent a result, or a subscription has ended.
 * - `tool-error`: the tool has run, and its result says that it failed.
 * - `error`: the server answered with an error, which has this code.
 * - `cancelled`: the client withdrew the request, or left before its answer.
 * - `failed`: the bridge refused the request, or could not get an answer to it.
 */
export type CallOutcome =
  | { readonly kind: 'answered' | 'tool-error' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly code: ErrorCode };

export interface CallEnding {
  readonly outcome: CallOutcome;
  /** Bytes sent to the client for the call: its answer, and all messages before. */
  readonly bytes: number;
  readonly durationMs: number;
  /**
   * The server of the call. Undefined if the server has not been reached yet, so that its era and revision are unknown.
   */
  readonly server: ObservedServer | undefined;
}

/**
 * Features that the specification has deprecated and that a client or server still uses. HTTP+SSE and old revisions are
 * missing here, because every observed call has its client's transport and revision.
 * [spec 2026-07-28 changelog; SEP-2577, SEP-2596]
 */
export type DeprecatedFeature = 'sampling' | 'roots' | 'logging' | 'batch' | 'dynamic-client-registration';

export type OnCallEnded = (ending: CallEnding) => void;
/**
 * Ends an observed call. The server's era and revision are added to the ending.
 * @param last the answer, or the notification in its place. Undefined if the client gets none.
 */
export type EndCall = (ending: Omit<CallEnding, 'server'>, last: Frame | undefined) => void;
export type OnClientLeft = (reason: ErrorCode) => void;

/**
 * Observes the clients of the bridge and their calls. Methods are called while a message is on its way, so none may
 * throw or take long. A method may return a function, which is called exactly once, at the end of the client or the
 * call.
 */
export interface Observer {
  /**
   * True if the observer wants the call that begins now. Read once per call; if false, nothing is read from the call's
   * messages.
   */
  readonly seesCalls: boolean;
  /** Called when a request of a client was taken or refused. A refused request ends at once. */
  opened(call: ObservedCall): OnCallEnded | undefined;
  /**
   * Called when a client gets a session, or sends its first modern request on a pipe. Modern clients over HTTP neither
   * connect nor leave, and are seen in their calls only.
   */
  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft | undefined;
  /** Called when a client gets no session. */
  refused(client: ClientOrigin, reason: ErrorCode): void;
  /**
   * Called for each use of a deprecated feature, which may be often. `client` is undefined if the bridge itself uses
   * the feature toward this server.
   */
  used(feature: DeprecatedFeature, by: { readonly server: string; readonly client: ObservedClient | undefined }): void;
}

/**
 * Observes one server: its processes, and the lists of tools that its clients get. Methods are called while a message is
 * on its way, so none may throw or take long.
 */
export interface ServerObserver {
  /** Called when a process was started. */
  started(): void;
  /** Called with each line of a process's stderr, which is printable and without what looks like a credential. */
  wrote(line: string): void;
  /** Called when a process has exited by itself, or is ended because it hangs. */
  failed(reason: string): void;
  /** Called with each result of `tools/list`, as the client gets it. */
  listedTools(result: Frame): void;
}

/** Characters of a peer's self-chosen name that an observer gets. Longer names are cut. */
export const MAX_OBSERVED_LENGTH = 256;

export function shownName(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, MAX_OBSERVED_LENGTH) : undefined;
}

/** Returns why a request is not taken, or undefined if it is. */
export type RefuseRequest = (request: Frame) => BridgeError | undefined;

/**
 * Refuses requests that can be read in several ways. Used if calls are recorded, because the record must show what the
 * server reads and which tool it runs.
 */
export const refuseUnclear: RefuseRequest = (request) => {
  const isUnclear = isAmbiguous(request) || (request.method === CALL_TOOL && readToolName(request) === undefined);
  return isUnclear ? UNCLEAR : undefined;
};

export function toolOf(request: Frame): string | undefined {
  return shownName(readToolName(request));
}

/** Returns true if a modern request asks for log messages, which are deprecated. */
export function wantsLogs(request: Frame): boolean {
  const metadata = readRequestMetadata(request);
  return !('fault' in metadata) && metadata.logLevel !== undefined;
}

/** Largest result that is searched for questions. Results in which a server asks its client something are small. */
const MAX_QUESTIONS_BYTES = 64 * 1024;
const QUESTIONS: readonly (readonly [DeprecatedFeature, string])[] = [
  ['sampling', JSON.stringify(SAMPLE)],
  ['roots', JSON.stringify(LIST_ROOTS)],
];

/** Returns the deprecated features among the questions in a result of a modern server. */
export function deprecatedQuestionsOf({ kind, bytes }: Frame): readonly DeprecatedFeature[] {
  if (kind !== 'result' || bytes.length > MAX_QUESTIONS_BYTES || !bytes.includes('"input_required"')) return [];
  return QUESTIONS.flatMap(([feature, method]) => (bytes.includes(method) ? [feature] : []));
}

/**
 * Returns the outcome that an answer stands for. An error that a bridge has made in place of the server's answer counts
 * as a failure, even if another bridge or a translator made it.
 */
export function outcomeOf(answer: Frame, method: string): CallOutcome {
  if (answer.kind !== 'error') return method === CALL_TOOL && isToolError(answer) ? TOOL_ERROR : ANSWERED;
  const failure = failureToldBy(answer);
  if (failure !== undefined) return { kind: 'failed', code: failure.code };
  const code = readField(answer, 'code');
  return { kind: 'error', code: typeof code === 'number' ? code : undefined };
}

/** A tool reports its failure in its result. [spec 2026-07-28 server/tools#error-handling] */
function isToolError(result: Frame): boolean {
  // Nearly all results have no such member, and a large one is searched far faster than it is read.
  return result.bytes.includes('"isError"') && readField(result, 'isError') === true;
}

export const ANSWERED: CallOutcome = { kind: 'answered' };
const TOOL_ERROR: CallOutcome = { kind: 'tool-error' };
export const CANCELED_CALL: CallOutcome = { kind: 'cancelled' };
