import { RecentNames } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { findProgressOf, findSubscriptionId } from '../../mcp/classify/correlators.ts';
import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { downgradeResult, downgradeTools } from '../../mcp/translate/downgrade-results.ts';
import { toLegacyResult } from '../../mcp/translate/results.ts';
import { isDeclared, type LogLevel, parseLogLevel, severityOf } from '../../mcp/vocabulary/client-declarations.ts';
import {
  CALL_TOOL,
  CANCELED,
  DISCOVER,
  INITIALIZE,
  INITIALIZED,
  isClientNotification,
  isTaskRequest,
  LIST_TOOLS,
  LISTEN,
  LOG_MESSAGE,
  PROGRESS,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../mcp/vocabulary/methods.ts';
import { type Fields, readField } from '../../mcp/vocabulary/payload.ts';
import type { ModernRevisionId, RevisionId } from '../../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ServerListener } from '../../relay/ports.ts';
import { EarlyQuestions } from '../../relay/shared/legacy/early-questions.ts';
import type { Frame } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';
import { decodeString } from '../../wire/json/scan-json.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { AbsorbedTask } from './absorbed-task.ts';
import { CallAtModernServer } from './call-at-modern-server.ts';
import { type CallKeeper, type ClientProfile, errorAnswer } from './call-host.ts';
import { ChangeListener } from './change-listener.ts';
import { type PendingInput, PendingInputs } from './pending-inputs.ts';
import { announcedLists, takesSubscriptions } from './server-subscription.ts';
import type { UpstreamRequests } from './upstream-requests.ts';

export interface OpenSessionOptions {
  readonly serverName: string;
  readonly deps: Deps;
  readonly random: () => number;
  readonly listener: ServerListener;
  readonly requests: UpstreamRequests;
  readonly profile: ClientProfile;
  /** The server's capabilities, in the answer to the client's `initialize`. */
  readonly capabilities: Fields;
  readonly revision: ModernRevisionId;
  /** Used for messages that belong to the session and not to one of its calls. */
  readonly lane: Lane;
  /** Opens an account for the bytes that one call of this client holds. */
  readonly openHeld: () => HeldBytes;
}

/** A legacy session after its handshake. State that the client believes the server to have is kept here. */
export class OpenSession implements CallKeeper<CallAtModernServer> {
  readonly serverName: string;
  readonly clock: Deps['clock'];
  readonly randomId: () => string;
  readonly profile: ClientProfile;
  listener: ServerListener;
  readonly requests: UpstreamRequests;
  readonly pendingInputs = new PendingInputs();
  readonly openHeld: () => HeldBytes;
  /** Holds questions until the client has sent `notifications/initialized`. */
  readonly #early: EarlyQuestions;
  readonly #log: Deps['log'];
  /** True if the server declared logging, so that `logging/setLevel` is accepted. */
  readonly #takesLevel: boolean;
  readonly #takesSubscriptions: boolean;
  /** The open calls that the server has to answer, by the client's call. */
  readonly #atServer = new Map<Call, CallAtModernServer>();
  readonly #changes: ChangeListener;
  readonly #results: LegacyResults;
  #revision: ModernRevisionId;
  /** Undefined if the client has not asked for log messages. */
  #logLevel: LogLevel | undefined;

  constructor(options: OpenSessionOptions) {
    const { serverName, deps, random, listener, requests, profile, capabilities, revision, lane } = options;
    this.serverName = serverName;
    this.clock = deps.clock;
    this.randomId = deps.randomId;
    this.profile = profile;
    this.listener = listener;
    this.requests = requests;
    this.openHeld = options.openHeld;
    this.#log = deps.log;
    this.#takesLevel = isDeclared(capabilities.logging);
    this.#takesSubscriptions = takesSubscriptions(capabilities);
    this.#revision = revision;
    this.#early = new EarlyQuestions(deps.clock);
    this.#results = new LegacyResults(profile.revision.id);
    this.#changes = new ChangeListener({
      log: deps.log,
      clock: deps.clock,
      random,
      client: this,
      requests,
      lists: announcedLists(capabilities),
      lane,
      // A subscription carries no log messages. [spec 2026-07-28 transports/streamable-http#receiving-messages]
      metadata: () => ({ ...this.metadata(), logLevel: undefined }),
    });
  }

  // ---- from the client

  /** Takes a request of the client. Returns false if the server's side is full. */
  request(frame: Frame, call: Call): boolean {
    const { method } = call;
    switch (method) {
      case INITIALIZE:
        return this.#answer(call, errorAnswer(call.id, SECOND_INITIALIZE));
      case SET_LEVEL:
        return this.#answer(call, this.#setLevel(frame, call));
      case SUBSCRIBE:
      case UNSUBSCRIBE:
        return this.#subscription(frame, call);
      // Both methods exist in the modern era only, so a server of the client's own era would not know them.
      case DISCOVER:
      case LISTEN:
        return this.#answer(call, notFound(call));
      default:
        // The server has not declared tasks to its client. [spec 2025-11-25 basic/utilities/tasks]
        if (isTaskRequest(method)) return this.#answer(call, notFound(call));
        return this.#call(frame, call);
    }
  }

  #answer(call: Call, answer: Frame): true {
    this.listener.fromServer(answer, call);
    return true;
  }

  #call(frame: Frame, call: Call): boolean {
    const atServer = new CallAtModernServer(this, frame, call);
    this.#atServer.set(call, atServer);
    return atServer.start();
  }

  /**
   * Sets the log level, which each later request carries.
   * [spec 2026-07-28 server/utilities/logging#per-request-log-level]
   */
  #setLevel(frame: Frame, call: Call): Frame {
    if (!this.#takesLevel) return notFound(call);
    const level = parseLogLevel(readField(frame, 'level'));
    if (level === undefined) {
      return errorFrame(call.id, {
        code: INVALID_PARAMS,
        message: 'params.level is none of the eight log levels.',
      });
    }
    this.#logLevel = level;
    return resultFrame(call.id, {});
  }

  #subscription(frame: Frame, call: Call): true {
    if (!this.#takesSubscriptions) return this.#answer(call, notFound(call));
    const uri = readField(frame, 'uri');
    if (typeof uri !== 'string') {
      const error = { code: INVALID_PARAMS, message: 'params.uri must be a string.' };
      return this.#answer(call, errorFrame(call.id, error));
    }
    if (call.method === SUBSCRIBE) this.#changes.subscribe(uri, call);
    else this.#changes.unsubscribe(uri, call);
    return true;
  }

  notification(frame: Frame, call: Call | undefined): boolean {
    switch (frame.method) {
      case INITIALIZED:
        this.#early.letGo();
        this.#changes.start();
        return true;
      case CANCELED:
        return call === undefined || this.#cancel(frame, call);
      case PROGRESS:
        // This is progress of an input request, which the server does not know.
        this.pendingInputs.get(findProgressOf(frame)?.value)?.owner.progressed();
        return true;
      default:
        // The other notifications of the legacy era mean nothing to a modern server: it asks for the roots when it
        // needs them, and its client runs no tasks. [spec 2026-07-28 changelog]
        if (isClientNotification(frame.method ?? '')) return true;
        return this.requests.notify(stampMetadata(frame, this.metadata()));
    }
  }

  #cancel(frame: Frame, call: Call): boolean {
    const reason = readField(frame, 'reason');
    const atServer = this.#atServer.get(call);
    if (atServer !== undefined) return atServer.cancel(typeof reason === 'string' ? reason : 'the client withdrew it');
    this.#changes.withdraw(call);
    return true;
  }

  /** Takes the client's answer to a question. */
  answer(frame: Frame): void {
    const input = this.pendingInputs.take(frame.id);
    if (input === undefined) return this.#log.debug('client answered what it is not asked anymore');
    input.owner.answered(input, frame);
  }

  // ---- from the server

  /** Takes a notification that belongs to no open request. */
  stray(frame: Frame): void {
    switch (frame.method) {
      case PROGRESS:
        return;
      case LOG_MESSAGE:
        // If the message belongs to a call, the relay finds out which.
        if (this.#isWanted(frame)) this.listener.fromServer(frame);
        return;
      default:
        // A subscription that is not open has been replaced in the meantime.
        if (findSubscriptionId(frame) !== undefined) return;
        this.listener.fromServer(frame);
    }
  }

  tell(frame: Frame, call: Call): void {
    if (frame.method !== LOG_MESSAGE || this.#isWanted(frame)) this.listener.fromServer(frame, call);
  }

  /**
   * Returns true if the log level of the session includes this message. The level may have been raised after the call
   * was sent.
   */
  #isWanted(log: Frame): boolean {
    if (this.#logLevel === undefined) return false;
    const level = parseLogLevel(readField(log, 'level'));
    return level === undefined || severityOf(level) >= severityOf(this.#logLevel);
  }

  // ---- for the calls

  ask(input: PendingInput, question: Frame, call: Call): void {
    const { length } = question.bytes;
    if (!this.#early.hasCapacityFor(length)) this.#early.letGo();
    this.#early.add(() => {
      if (this.pendingInputs.get(input.id) === input) this.listener.fromServer(question, call);
    }, length);
  }

  metadata(): RequestMetadata {
    const { capabilities, clientInfo } = this.profile;
    return { revision: this.#revision, capabilities, clientInfo, logLevel: this.#logLevel };
  }

  useRevision(revision: ModernRevisionId): void {
    this.#revision = revision;
  }

  toLegacyResult(result: Frame, request: Frame): Frame {
    return this.#results.toLegacy(result, request);
  }

  ended(atServer: CallAtModernServer): void {
    this.#atServer.delete(atServer.call);
  }

  /** Returns the tasks that the server has made of calls of this client. */
  tasks(): readonly AbsorbedTask[] {
    return [...this.#atServer.values()].flatMap(({ task }) => task ?? []);
  }

  /** Stops every timer. No message is sent to either side. */
  close(): void {
    this.#changes.close();
    this.#early.drop();
    for (const atServer of this.#atServer.values()) atServer.abandon();
    this.#atServer.clear();
    this.pendingInputs.clear();
  }
}

const SECOND_INITIALIZE = new BridgeError('ERR_WIRE_MESSAGE', 'This session is initialized already.');

function notFound({ id }: Call): Frame {
  return errorFrame(id, { code: METHOD_NOT_FOUND, message: 'The server has no such method.' });
}

/**
 * Number of tools that are remembered of one server, and characters of their names. For a tool that is not remembered,
 * its result decides.
 */
const WRAPPED_LIMITS = { count: 1000, length: 64 * 1024 };

/**
 * Converts results to the revision of one client. Tools whose results have to be wrapped are remembered, because a
 * result has to follow the schema that the client saw in the list.
 */
export class LegacyResults {
  readonly #clientRevision: RevisionId;
  /** Tools whose output is no object. Legacy clients get their output as a member of an object. */
  readonly #wrapped = new RecentNames<true>(WRAPPED_LIMITS);

  constructor(clientRevision: RevisionId) {
    this.#clientRevision = clientRevision;
  }

  toLegacy(result: Frame, request: Frame): Frame {
    const method = request.method ?? '';
    const legacy = toLegacyResult(result, method);
    if (method === LIST_TOOLS) return this.#toLegacyTools(legacy, request);
    const isWrapped = method === CALL_TOOL && this.#isWrapped(request) ? true : undefined;
    return downgradeResult(legacy, { method, clientRevision: this.#clientRevision, isWrapped });
  }

  #toLegacyTools(page: Frame, request: Frame): Frame {
    const { frame, wrapped } = downgradeTools(page, this.#clientRevision);
    // The first page of a list replaces the known tools, and further pages add to them.
    if (readField(request, 'cursor') === undefined) this.#wrapped.clear();
    for (const name of wrapped) this.#wrapped.set(name, true);
    return frame;
  }

  #isWrapped({ bytes, payloadStart }: Frame): boolean {
    if (this.#wrapped.size === 0) return false;
    const name = findMember(bytes, payloadStart, 'name');
    const text = name && decodeString(bytes, name.start, name.end);
    return text !== undefined && this.#wrapped.has(text);
  }
}
