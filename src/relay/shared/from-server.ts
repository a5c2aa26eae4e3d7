import type { Logger } from 'pino';
import { assertNever, BridgeError } from '../../errors.ts';
import { missingCapability } from '../../mcp/client-capabilities.ts';
import { findCancelledId, findProgressOf } from '../../mcp/correlators.ts';
import { parseLogLevel } from '../../mcp/log-levels.ts';
import {
  CANCELLED,
  ELICIT,
  ELICITATION_COMPLETE,
  isListChanged,
  LOG_MESSAGE,
  PING,
  PROGRESS,
  RESOURCE_UPDATED,
} from '../../mcp/methods.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { withId } from '../../wire/splice.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { ServerFault, UpstreamLink } from '../ports.ts';
import type { Owner } from './pending-calls.ts';
import { rewriteCancelled, rewriteProgress } from './rewrite.ts';
import type { SharedState } from './shared-state.ts';

/**
 * Takes what a shared server says and gives each message to the client it belongs to: by id, by token, by
 * subscription, or because only one client can be meant. What belongs to one caller never goes to another; where that
 * cannot be told, it goes to nobody, and a request gets an error.
 */
export class FromServer {
  readonly #state: SharedState;
  readonly #log: Logger;

  constructor(state: SharedState, log: Logger) {
    this.#state = state;
    this.#log = log;
  }

  take(link: UpstreamLink, frame: Frame): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answer(frame);
      case 'notification':
        return this.#notification(frame);
      case 'request':
        return this.#request(link, frame);
      default:
        return assertNever(frame.kind);
    }
  }

  #answer(frame: Frame): void {
    const own = typeof frame.id === 'number' ? this.#state.own.get(frame.id) : undefined;
    if (own !== undefined) {
      this.#state.own.delete(frame.id as number);
      return own(frame);
    }
    const call = this.#state.calls.take(frame.id);
    if (call === undefined) return this.#log.debug({ id: frame.id }, 'server answered a request that is not open');
    call.answered?.(frame.kind === 'result');
    if (frame.kind === 'error') this.#noteElicitations(frame, call.seat);
    call.seat.listener.fromServer(withId(frame, call.idToken), call.exchange);
  }

  /** [spec 2025-11-25 client/elicitation#url-elicitation-required-error] the error names elicitations, too. */
  #noteElicitations(frame: Frame, seat: Parameters<SharedState['questions']['noteElicitation']>[1]): void {
    if (!frame.bytes.includes('"elicitationId"')) return;
    const { error } = frame.json() as { error?: { data?: { elicitations?: unknown } } };
    const listed = error?.data?.elicitations;
    if (!Array.isArray(listed)) return;
    for (const item of listed) this.#state.questions.noteElicitation(item?.elicitationId, seat);
  }

  // ---- notifications

  #notification(frame: Frame): void {
    const { method } = frame;
    if (isListChanged(method)) return this.#toEveryone(frame);
    switch (method) {
      case PROGRESS:
        return this.#progress(frame);
      case LOG_MESSAGE:
        return this.#logMessage(frame);
      case RESOURCE_UPDATED:
        return this.#resourceUpdated(frame);
      case CANCELLED:
        return this.#questionWithdrawn(frame);
      case ELICITATION_COMPLETE:
        return this.#elicitationComplete(frame);
      default:
        return this.#toOwner(frame, this.#state.calls.owner());
    }
  }

  #toEveryone(frame: Frame): void {
    for (const seat of this.#state.seats) if (seat.isInitialized) seat.listener.fromServer(frame);
  }

  #progress(frame: Frame): void {
    const call = this.#state.calls.get(findProgressOf(frame)?.value);
    const rewritten = call?.progressToken && rewriteProgress(frame, call.progressToken);
    if (call !== undefined && rewritten !== undefined) call.seat.listener.fromServer(rewritten, call.exchange);
  }

  #logMessage(frame: Frame): void {
    const level = parseLogLevel(paramsOf(frame).level);
    if (level === undefined) return;
    const owner = this.#state.calls.owner();
    const { levels } = this.#state;
    if (owner.kind === 'one') {
      if (levels.wants(owner.seat, level)) owner.seat.listener.fromServer(frame, owner.exchange);
    } else if (owner.kind === 'nobody') {
      // No call is open: this is about the server itself.
      for (const seat of this.#state.seats) if (levels.wants(seat, level)) seat.listener.fromServer(frame);
    } else {
      this.#log.debug('log message dropped: calls of several clients are open and it may be about any of them');
    }
  }

  #resourceUpdated(frame: Frame): void {
    const { uri } = paramsOf(frame);
    if (typeof uri !== 'string') return;
    for (const seat of this.#state.subscriptions.clientsFor(uri)) seat.listener.fromServer(frame);
  }

  #questionWithdrawn(frame: Frame): void {
    const withdrawn = findCancelledId(frame);
    const question = withdrawn && this.#state.questions.takeWithdrawn(withdrawn.value);
    const rewritten = question && rewriteCancelled(frame, question.id);
    if (question !== undefined && rewritten !== undefined) question.seat.listener.fromServer(rewritten);
  }

  #elicitationComplete(frame: Frame): void {
    this.#state.questions.seatOfElicitation(paramsOf(frame).elicitationId)?.listener.fromServer(frame);
  }

  #toOwner(frame: Frame, owner: Owner): void {
    const only = this.#onlySeat();
    if (owner.kind === 'one') owner.seat.listener.fromServer(frame, owner.exchange);
    else if (owner.kind === 'nobody' && only !== undefined) only.listener.fromServer(frame);
    else this.#log.debug({ method: frame.method }, 'notification dropped: it names no client');
  }

  // ---- requests

  #request(link: UpstreamLink, frame: Frame): void {
    const serverId = frame.id as JsonRpcId;
    // The one question the bridge can answer for everybody.
    if (frame.method === PING) return void link.send(resultFrame(serverId, {}));
    const { params } = frame.json() as { params?: { elicitationId?: unknown } };
    const asked = this.#whomToAsk(frame, params);
    if (asked instanceof BridgeError) {
      this.#log.warn({ code: asked.code, method: frame.method }, asked.message);
      return void link.send(errorFrame(serverId, rpcErrorOf(asked)));
    }
    const question = this.#state.questions.open(asked.seat, serverId);
    if (frame.method === ELICIT) this.#state.questions.noteElicitation(params?.elicitationId, asked.seat);
    asked.seat.listener.fromServer(withId(frame, question.id), asked.exchange);
  }

  #whomToAsk(frame: Frame, params: unknown): Extract<Owner, { kind: 'one' }> | BridgeError {
    let owner = this.#state.calls.asker();
    const only = this.#onlySeat();
    if (owner.kind === 'nobody' && only !== undefined) owner = { kind: 'one', seat: only, exchange: undefined };
    if (owner.kind !== 'one') {
      return new BridgeError(
        'ERR_SHARED_AMBIGUOUS',
        `${frame.method} names no call, and calls of ${owner.kind === 'nobody' ? 'no client' : 'several clients'} are open: nobody can be asked without guessing. Servers that ask their clients are best run with --isolation session.`,
      );
    }
    const missing = missingCapability(owner.seat.capabilities, frame.method, params);
    if (missing === undefined) return owner;
    return new BridgeError('ERR_CLIENT_CAPABILITY', `The client of this call did not declare ${missing}.`);
  }

  #onlySeat() {
    if (this.#state.seats.size !== 1) return undefined;
    for (const seat of this.#state.seats) return seat;
    return undefined;
  }

  // ---- faults

  fault(link: UpstreamLink, fault: ServerFault): void {
    this.#log.error({ code: fault.error.code }, fault.error.message);
    if (fault.kind === 'request' && fault.id !== undefined) {
      return void link.send(errorFrame(fault.id, rpcErrorOf(fault.error)));
    }
    const call = fault.kind === 'notification' ? undefined : this.#state.calls.take(fault.id);
    call?.seat.listener.fromServer(errorFrame(call.idToken, rpcErrorOf(fault.error)), call.exchange);
  }
}

function paramsOf(frame: Frame): {
  readonly uri?: unknown;
  readonly level?: unknown;
  readonly elicitationId?: unknown;
} {
  return (frame.json() as { params?: { uri?: unknown; level?: unknown; elicitationId?: unknown } }).params ?? {};
}
