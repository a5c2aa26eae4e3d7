import { BridgeError } from '../../errors.ts';
import { parseLogLevel } from '../../mcp/log-levels.ts';
import {
  CANCELLED,
  INITIALIZE,
  PROGRESS,
  ROOTS_CHANGED,
  SET_LEVEL,
  SUBSCRIBE,
  TASKS_PREFIX,
  UNSUBSCRIBE,
} from '../../mcp/methods.ts';
import { rpcErrorOf } from '../../mcp/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { idToken, withId } from '../../wire/splice.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import { rewriteCancelled, rewriteRequest } from './rewrite.ts';
import type { Seat } from './seat.ts';
import type { InitializeResult, ReadyServer, SharedState } from './shared-state.ts';

/**
 * Takes what one of several clients says to the server they share. Ids become the link's, and what is state of the
 * server for everybody (handshake, subscriptions, log level) is reconciled instead of repeated.
 */
export class FromSeats {
  readonly #state: SharedState;

  constructor(state: SharedState) {
    this.#state = state;
  }

  /** False: the server's pipe is full. */
  take(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return exchange === undefined || this.#request(server, seat, frame, exchange);
      case 'notification':
        return this.#notification(server, frame, exchange);
      case 'result':
      case 'error':
        return this.#answer(server, seat, frame);
    }
  }

  #request(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange): boolean {
    const { method } = exchange;
    switch (method) {
      case INITIALIZE:
        return this.#answerInitialize(server, seat, frame, exchange);
      case SET_LEVEL:
        return this.#setLevel(server, seat, frame, exchange);
      case SUBSCRIBE:
        return this.#subscribe(server, seat, frame, exchange);
      case UNSUBSCRIBE:
        return this.#unsubscribe(server, seat, frame, exchange);
      default:
        return method.startsWith(TASKS_PREFIX)
          ? this.#refuseTasks(seat, exchange)
          : this.#forward(server, seat, frame, exchange);
    }
  }

  #forward(
    server: ReadyServer,
    seat: Seat,
    frame: Frame,
    exchange: Exchange,
    answered?: (succeeded: boolean) => void,
  ): boolean {
    exchange.upstreamId = this.#state.nextId();
    const rewritten = rewriteRequest(frame, exchange.upstreamId);
    const { progressToken } = rewritten;
    this.#state.calls.add(exchange.upstreamId, { seat, exchange, idToken: idToken(frame), progressToken, answered });
    return server.link.send(rewritten.frame);
  }

  /** Every client gets the result of the one real handshake, in the revision it asked for. */
  #answerInitialize(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange): boolean {
    seat.introduce(frame);
    answer(seat, exchange, resultFrame(idToken(frame), seatResult(server.initializeResult, seat)));
    return true;
  }

  /** Task ids carry no owner: a client could read and cancel another's. So tasks are neither shown nor served. */
  #refuseTasks(seat: Seat, exchange: Exchange): boolean {
    const message = 'Tasks are not available on a server shared by several clients; use --isolation session.';
    const error = new BridgeError('ERR_SHARED_METHOD', message);
    answer(seat, exchange, errorFrame(exchange.id, rpcErrorOf(error)));
    return true;
  }

  #setLevel(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange): boolean {
    const level = parseLogLevel(paramsOf(frame).level);
    // What the server has to say about an unknown level is its own business.
    if (level === undefined) return this.#forward(server, seat, frame, exchange);
    const before = this.#state.levels.mostVerbose();
    this.#state.levels.set(seat, level);
    const after = this.#state.levels.mostVerbose();
    if (after === level && after !== before) return this.#forward(server, seat, frame, exchange);
    if (after !== before) this.tell(server, SET_LEVEL, { level: after });
    answer(seat, exchange, resultFrame(exchange.id, {}));
    return true;
  }

  #subscribe(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange): boolean {
    const { uri } = paramsOf(frame);
    const { subscriptions } = this.#state;
    if (typeof uri !== 'string') return this.#forward(server, seat, frame, exchange);
    if (!subscriptions.has(uri)) {
      return this.#forward(server, seat, frame, exchange, (succeeded) => {
        if (succeeded && this.#state.seats.has(seat)) subscriptions.add(uri, seat);
      });
    }
    subscriptions.add(uri, seat);
    answer(seat, exchange, resultFrame(exchange.id, {}));
    return true;
  }

  #unsubscribe(server: ReadyServer, seat: Seat, frame: Frame, exchange: Exchange): boolean {
    const { uri } = paramsOf(frame);
    const { subscriptions } = this.#state;
    const isOthers = typeof uri === 'string' && subscriptions.has(uri) && !subscriptions.remove(uri, seat);
    if (!isOthers) return this.#forward(server, seat, frame, exchange);
    answer(seat, exchange, resultFrame(exchange.id, {}));
    return true;
  }

  #notification(server: ReadyServer, frame: Frame, exchange: Exchange | undefined): boolean {
    switch (frame.method) {
      case CANCELLED:
        return exchange === undefined || this.#cancel(server, frame, exchange);
      // Each client has roots of its own; the server asks for them within a call.
      case ROOTS_CHANGED:
      // About a request of the server; its token is the server's, and which client may use it is not recorded.
      case PROGRESS:
        return true;
      default:
        return server.link.send(frame);
    }
  }

  #cancel(server: ReadyServer, frame: Frame, exchange: Exchange): boolean {
    const call = this.#state.calls.take(exchange.upstreamId);
    const rewritten = call && rewriteCancelled(frame, exchange.upstreamId);
    return rewritten === undefined || server.link.send(rewritten);
  }

  #answer(server: ReadyServer, seat: Seat, frame: Frame): boolean {
    const question = this.#state.questions.takeAnswered(seat, frame.id);
    return question === undefined || server.link.send(withId(frame, question.serverId));
  }

  /** A request of the bridge itself whose answer changes nothing. */
  tell(server: ReadyServer, method: string, params: object): void {
    const id = this.#state.nextId();
    this.#state.own.set(id, () => {});
    server.link.send(requestFrame(id, method, params));
  }

  /** Withdraws what the client had open; the server goes on without it. */
  leave(server: ReadyServer, seat: Seat, reason: BridgeError): void {
    const { calls, questions, subscriptions, levels } = this.#state;
    for (const { exchange } of calls.takeOf(seat)) {
      server.link.send(notificationFrame(CANCELLED, { requestId: exchange.upstreamId, reason: 'the client left' }));
    }
    for (const { serverId } of questions.takeOf(seat)) {
      server.link.send(errorFrame(serverId, rpcErrorOf(reason)));
    }
    for (const uri of subscriptions.removeClient(seat)) this.tell(server, UNSUBSCRIBE, { uri });
    const before = levels.mostVerbose();
    levels.delete(seat);
    const after = levels.mostVerbose();
    if (after !== undefined && after !== before) this.tell(server, SET_LEVEL, { level: after });
  }
}

function answer(seat: Seat, exchange: Exchange, frame: Frame): void {
  seat.listener.fromServer(frame, exchange);
}

function paramsOf(frame: Frame): { readonly uri?: unknown; readonly level?: unknown } {
  return (frame.json() as { params?: { uri?: unknown; level?: unknown } }).params ?? {};
}

function seatResult(result: InitializeResult, seat: Seat): object {
  const { tasks: _tasks, ...capabilities } = result.capabilities ?? {};
  return { ...result, protocolVersion: seat.revisionId, capabilities };
}
