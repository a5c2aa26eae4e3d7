/** The calls that are open on a shared legacy server, and which of its clients what the server sends belongs to. */
import type { Logger } from 'pino';
import { assertNever, type BridgeError } from '../../../errors.ts';
import {
  findCanceledId,
  findProgressOf,
  rewriteProgress,
  rewriteServerCanceled,
} from '../../../mcp/classify/correlators.ts';
import { parseLogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import {
  CANCELED,
  ELICITATION_COMPLETE,
  isListChanged,
  LOG_MESSAGE,
  PING,
  PROGRESS,
  RESOURCE_UPDATED,
} from '../../../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { asNumber, type Frame, type JsonRpcId } from '../../../wire/frame.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../../wire/write-message.ts';
import type { Call } from '../../call.ts';
import type { ServerFault, UpstreamLink } from '../../ports.ts';
import { refusalOfId } from '../../questions.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { LegacyState } from './legacy-state.ts';
import type { Owner, PendingCall, SoleOne } from './pending-calls.ts';
import type { SharingPolicy } from './sharing-policy.ts';

/** Characters shown of the name of a method. */
const MAX_SHOWN_LENGTH = 100;

/**
 * Takes what a shared server says and gives each message to the client it belongs to: by id, by token, by
 * subscription, or because only one client can be meant. What belongs to one caller never goes to another; where that
 * cannot be told, it goes to nobody, and a request gets an error.
 */
export class FromServer {
  readonly #state: LegacyState;
  readonly #policy: SharingPolicy;
  readonly #log: Logger;
  /** Why questions were refused so far. */
  readonly #noted = new Set<string>();

  constructor(state: LegacyState, policy: SharingPolicy, log: Logger) {
    this.#state = state;
    this.#policy = policy;
    this.#log = log;
  }

  take(link: UpstreamLink, frame: Frame, known: Call | undefined): void {
    if (known !== undefined) this.#state.namesCalls = true;
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answer(frame);
      case 'notification':
        return this.#notification(frame, known);
      case 'request':
        return this.#request(link, frame, known);
      default:
        return assertNever(frame.kind);
    }
  }

  #answer(frame: Frame): void {
    const own = this.#takeOwn(frame.id);
    if (own !== undefined) return own(frame);
    const pending = this.#takePending(frame.id);
    if (pending === undefined) {
      this.#answeredLate(frame.id);
      return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    pending.upstream?.settle();
    pending.over?.(frame.kind === 'result' ? 'succeeded' : 'failed');
    const { client, call, idToken } = pending;
    if (frame.kind === 'error') this.#noteElicitations(frame, client);
    client.listener.fromServer(client.answered(frame, { method: call.method, idToken }), call);
    this.#policy.callAnswered();
  }

  #answeredLate(id: JsonRpcId | undefined): void {
    const abandoned = this.#state.abandoned.takeAnswered(id);
    if (abandoned !== undefined) this.#policy.abandonedAnswered(abandoned);
  }

  /** Without an id it can only be about what is open if that is one thing: a server could not read a request. */
  #takePending(id: JsonRpcId | undefined): PendingCall | undefined {
    return id === undefined ? this.#state.pendingCalls.takeSole() : this.#state.pendingCalls.take(id);
  }

  /** Takes the request of the bridge itself that an answer belongs to; everything waits for that of the handshake. */
  #takeOwn(id: JsonRpcId | undefined): ((answer: Frame) => void) | undefined {
    const { own, pendingCalls } = this.#state;
    const [sole] = own.size === 1 && pendingCalls.size === 0 ? own.keys() : [];
    const key = id ?? sole;
    const answered = typeof key === 'number' ? own.get(key) : undefined;
    if (typeof key === 'number') own.delete(key);
    return answered;
  }

  /** [spec 2025-11-25 client/elicitation#url-elicitation-required-error] the error names elicitations, too. */
  #noteElicitations(frame: Frame, client: LegacyClient): void {
    if (!frame.bytes.includes('"elicitationId"')) return;
    const listed = asFields(readField(frame, 'data'))?.elicitations;
    if (!Array.isArray(listed)) return;
    for (const item of listed) this.#state.questions.noteElicitation(asFields(item)?.elicitationId, client);
  }

  // ---- notifications

  #notification(frame: Frame, known: Call | undefined): void {
    const { method } = frame;
    if (isListChanged(method)) return this.#toEveryone(frame);
    switch (method) {
      case PROGRESS:
        return this.#progress(frame);
      case LOG_MESSAGE:
        return this.#logMessage(frame, known);
      case RESOURCE_UPDATED:
        return this.#resourceUpdated(frame);
      case CANCELED:
        return this.#questionWithdrawn(frame);
      case ELICITATION_COMPLETE:
        return this.#elicitationComplete(frame);
      default:
        return this.#toOwner(frame, this.#ownerOf(known) ?? this.#policy.unnamedOwner());
    }
  }

  #toEveryone(frame: Frame): void {
    this.#policy.listChanged(frame.method);
    for (const client of this.#state.clients.toArray()) if (client.isInitialized) client.listener.fromServer(frame);
  }

  #progress(frame: Frame): void {
    const token = findProgressOf(frame);
    const pending = this.#state.pendingCalls.get(asNumber(token?.value));
    const rewritten = pending?.progressToken && rewriteProgress(frame, pending.progressToken, token);
    if (pending !== undefined && rewritten !== undefined) pending.client.listener.fromServer(rewritten, pending.call);
  }

  /** Returns the client's call that a call on the shared link stands for. */
  #ownerOf(known: Call | undefined): SoleOne | undefined {
    return known && this.#state.pendingCalls.ownerWithId(known.id);
  }

  #logMessage(frame: Frame, known: Call | undefined): void {
    const level = parseLogLevel(readField(frame, 'level'));
    if (level === undefined) return;
    const { levels } = this.#state;
    const owner = this.#ownerOf(known) ?? this.#policy.logOwner();
    if (owner.kind === 'one') {
      if (levels.wants(owner.client, level)) owner.client.listener.fromServer(frame, owner.call);
    } else if (owner.kind === 'nobody') {
      // No call is open: this is about the server itself.
      for (const client of this.#state.clients.toArray())
        if (levels.wants(client, level)) client.listener.fromServer(frame);
    } else {
      this.#log.debug('log message dropped: calls of several clients are open and it may be about any of them');
    }
  }

  #resourceUpdated(frame: Frame): void {
    const uri = readField(frame, 'uri');
    if (typeof uri !== 'string') return;
    for (const client of this.#policy.watchersOf(uri)) client.listener.fromServer(frame);
  }

  #questionWithdrawn(frame: Frame): void {
    const withdrawn = findCanceledId(frame);
    if (withdrawn === undefined) return;
    const question = this.#state.questions.takeWithdrawn(withdrawn.value);
    if (question === undefined) return this.#policy.questionWithdrawn(withdrawn.value);
    const { id, client } = question;
    client.listener.fromServer(rewriteServerCanceled(frame, id) ?? notificationFrame(CANCELED, { requestId: id }));
  }

  #elicitationComplete(frame: Frame): void {
    const elicitationId = readField(frame, 'elicitationId');
    if (typeof elicitationId === 'string') this.#policy.elicitationCompleted(elicitationId, frame);
  }

  #toOwner(frame: Frame, owner: Owner): void {
    if (owner.kind === 'one') owner.client.listener.fromServer(frame, owner.call);
    else this.#log.debug({ method: frame.method }, 'notification dropped: it names no client');
  }

  // ---- requests

  #request(link: UpstreamLink, frame: Frame, known: Call | undefined): void {
    const serverId = frame.id as JsonRpcId;
    // The one question the bridge can answer for everybody.
    if (frame.method === PING) return void link.send(resultFrame(serverId, {}));
    const refuse = (reason: BridgeError): void => this.#refuse(link, frame, reason);
    const refusal = refusalOfId(serverId) ?? this.#policy.ask({ link, question: frame, known, refuse });
    if (refusal !== undefined) refuse(refusal);
  }

  #refuse(link: UpstreamLink, frame: Frame, reason: BridgeError): void {
    this.#noteRefusal(reason, frame);
    link.send(errorFrame(frame.id as JsonRpcId, rpcErrorOf(reason)));
  }

  /** Once for each kind: the server may go on asking for as long as it runs. */
  #noteRefusal({ code, message }: BridgeError, { method }: Frame): void {
    const level = this.#noted.has(code) ? 'debug' : 'warn';
    this.#noted.add(code);
    this.#log[level]({ code, method: method?.slice(0, MAX_SHOWN_LENGTH) }, message);
  }

  // ---- faults

  fault(link: UpstreamLink, fault: ServerFault): void {
    this.#log.error({ code: fault.error.code }, fault.error.message);
    if (fault.kind === 'request' && fault.id !== undefined) {
      return void link.send(errorFrame(fault.id, rpcErrorOf(fault.error)));
    }
    if (fault.kind === 'notification') return;
    const own = this.#takeOwn(fault.id);
    if (own !== undefined) return own(errorFrame(fault.id, rpcErrorOf(fault.error)));
    const pending = this.#takePending(fault.id);
    if (pending === undefined) return fault.kind === undefined ? undefined : this.#answeredLate(fault.id);
    pending.upstream?.settle();
    pending.over?.('failed');
    pending.client.listener.fromServer(errorFrame(pending.idToken, rpcErrorOf(fault.error)), pending.call);
  }
}
