import { BridgeError, UNCLEAR } from '../../../errors.ts';
import { isAmbiguous } from '../../../mcp/classify/ambiguity.ts';
import { rewriteClientCanceled, rewriteRequest } from '../../../mcp/classify/correlators.ts';
import { parseLogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import {
  CANCELED,
  INITIALIZE,
  INITIALIZED,
  PING,
  PROGRESS,
  ROOTS_CHANGED,
  SET_LEVEL,
  SUBSCRIBE,
  TASKS_PREFIX,
  UNSUBSCRIBE,
} from '../../../mcp/vocabulary/methods.ts';
import { readField } from '../../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import { TOO_MANY_SUBSCRIBED } from '../../../mcp/vocabulary/subscribed-uris.ts';
import { type Frame, idToken, withId } from '../../../wire/frame.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../../wire/write-message.ts';
import { Call } from '../../call.ts';
import type { UpstreamLink } from '../../ports.ts';
import { callOf, refuse } from '../shared-client.ts';
import { type InitializeResult, resultForClient } from './initialize-result.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { LegacyState } from './legacy-state.ts';
import type { CallOutcome, PendingCall } from './pending-calls.ts';
import type { SharingPolicy } from './sharing-policy.ts';

/**
 * Takes what one of several clients says to the server they share. Ids become the link's, and what is state of the
 * server for everybody (handshake, subscriptions, log level) is reconciled instead of repeated.
 */
export class FromClients {
  readonly #state: LegacyState;
  readonly #policy: SharingPolicy;

  constructor(state: LegacyState, policy: SharingPolicy) {
    this.#state = state;
    this.#policy = policy;
  }

  /** False: the server's pipe is full. */
  take(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return this.#request(link, client, frame, callOf(frame, call));
      case 'notification':
        return this.#notification(link, client, frame, call);
      case 'result':
      case 'error':
        return this.#answer(link, client, frame);
    }
  }

  #request(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call): boolean {
    if (isAmbiguous(frame)) return refuse(client, frame, call, UNCLEAR);
    const { method } = call;
    switch (method) {
      case INITIALIZE:
        return this.#answerInitialize(client, frame, call);
      case SET_LEVEL:
        return this.#setLevel(link, client, frame, call);
      case SUBSCRIBE:
        return this.#subscribe(link, client, frame, call);
      case UNSUBSCRIBE:
        return this.#unsubscribe(link, client, frame, call);
      case PING:
        // The server's own ping would count as a call of this client, and make others' messages ambiguous.
        return succeed(client, frame, call);
      default:
        return method.startsWith(TASKS_PREFIX) && !this.#policy.passesUnowned
          ? this.#refuseTasks(client, frame, call)
          : this.#forward(link, client, frame, call);
    }
  }

  #forward(
    link: UpstreamLink,
    client: LegacyClient,
    frame: Frame,
    call: Call,
    over?: (outcome: CallOutcome) => void,
  ): boolean {
    const { pendingCalls, withdrawn } = this.#state;
    const upstreamId = this.#state.nextId();
    const rewritten = rewriteRequest(frame, upstreamId);
    const refusal = rewritten === undefined ? UNCLEAR : withdrawn.refusalOf(rewritten.frame.bytes.length);
    if (rewritten === undefined || refusal !== undefined) {
      over?.('failed');
      return refuse(client, frame, call, refusal ?? UNCLEAR);
    }
    const { progressToken } = rewritten;
    call.upstreamId = upstreamId;
    const { method, lastActiveMs } = call;
    const { lane } = this.#policy;
    const upstream = lane && new Call(upstreamId, method, lane, undefined, lastActiveMs);
    const { bytes } = rewritten.frame;
    pendingCalls.add(upstreamId, {
      client,
      call,
      upstream,
      idToken: idToken(frame),
      progressToken,
      bytes: bytes.length,
      over,
    });
    return withdrawn.sent(link.send(rewritten.frame, upstream));
  }

  /** Every client gets the result of the one real handshake, in the revision it asked for. */
  #answerInitialize(client: LegacyClient, frame: Frame, call: Call): boolean {
    const offer = this.#state.offer as InitializeResult; // nothing is taken before there is one
    const revision = client.introduce(frame, offer.protocolVersion);
    answer(client, call, resultFrame(idToken(frame), resultForClient(offer, revision)));
    return true;
  }

  /** Task ids carry no owner: a client could read and cancel another's. So tasks are neither shown nor served. */
  #refuseTasks(client: LegacyClient, frame: Frame, call: Call): boolean {
    const message = 'Tasks are not available on a server shared by several clients; use --isolation session.';
    const error = new BridgeError('ERR_SHARED_METHOD', message);
    answer(client, call, errorFrame(idToken(frame), rpcErrorOf(error)));
    return true;
  }

  #setLevel(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call): boolean {
    const { levels } = this.#state;
    const level = parseLogLevel(readField(frame, 'level'));
    // An unknown level is for the server to refuse.
    if (level === undefined) return this.#forward(link, client, frame, call);
    const mostVerbose = levels.mostVerbose();
    const previous = levels.get(client);
    levels.set(client, level);
    const wanted = levels.mostVerbose();
    if (wanted === level && wanted !== mostVerbose) {
      return this.#forward(link, client, frame, call, (outcome) => {
        if (outcome === 'failed') levels.set(client, previous);
      });
    }
    if (wanted !== mostVerbose) this.#state.tell(link, SET_LEVEL, { level: wanted });
    return succeed(client, frame, call);
  }

  #subscribe(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call): boolean {
    const uri = readField(frame, 'uri');
    const { subscriptions } = this.#state;
    if (typeof uri !== 'string') return this.#forward(link, client, frame, call);
    const isGranted = subscriptions.isGranted(uri);
    // At once: whatever happens until the server has answered finds it there.
    if (!subscriptions.add(uri, client)) return refuse(client, frame, call, TOO_MANY_SUBSCRIBED);
    if (isGranted) return succeed(client, frame, call);
    return this.#forward(link, client, frame, call, (outcome) => {
      if (outcome === 'succeeded') return subscriptions.setGranted(uri, true);
      const isLast = subscriptions.remove(uri, client);
      // The server may have agreed before it heard of the withdrawal.
      if (isLast && outcome === 'withdrawn') this.#state.tell(link, UNSUBSCRIBE, { uri });
    });
  }

  #unsubscribe(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call): boolean {
    const uri = readField(frame, 'uri');
    const { subscriptions } = this.#state;
    const isOthers = typeof uri === 'string' && subscriptions.has(uri) && !subscriptions.remove(uri, client);
    return isOthers ? succeed(client, frame, call) : this.#forward(link, client, frame, call);
  }

  #notification(link: UpstreamLink, client: LegacyClient, frame: Frame, call: Call | undefined): boolean {
    switch (frame.method) {
      case INITIALIZED:
        // The server got its own after the one real handshake.
        client.finishHandshake();
        return true;
      case CANCELED:
        return call === undefined || this.#cancel(link, frame, call);
      // Each client has roots of its own; the server asks for them within a call.
      case ROOTS_CHANGED:
      // About a request of the server; its token is the server's, and which client may use it is not recorded.
      case PROGRESS:
        return !this.#policy.passesUnowned || link.send(frame);
      default:
        return isAmbiguous(frame) || link.send(frame);
    }
  }

  #cancel(link: UpstreamLink, frame: Frame, call: Call): boolean {
    const { upstreamId } = call;
    const pending = this.#state.pendingCalls.take(upstreamId);
    if (pending === undefined) return true;
    const rewritten = isAmbiguous(frame) ? undefined : rewriteClientCanceled(frame, upstreamId);
    // If servers could read the notification in several ways, the bridge writes one of its own.
    const notification = rewritten ?? notificationFrame(CANCELED, { requestId: upstreamId });
    pending.upstream?.cancel('client');
    this.#state.withdrawn.add(pending.bytes);
    const hasCapacity = link.send(notification, pending.upstream);
    pending.over?.('withdrawn');
    this.#abandon(pending);
    return hasCapacity;
  }

  #abandon({ call, client }: PendingCall): void {
    this.#state.abandoned.add(call, client.identity);
    this.#policy.callAbandoned();
  }

  #answer(link: UpstreamLink, client: LegacyClient, frame: Frame): boolean {
    const question = this.#state.questions.takeAnswered(client, frame.id);
    if (question === undefined) return true;
    const { serverId } = question;
    return link.send(withId(frame, serverId));
  }

  /** The child is gone: nothing is answered anymore, neither by it nor to it. */
  lost(reason: BridgeError): void {
    const { own, pendingCalls, questions } = this.#state;
    own.clear();
    for (const pending of pendingCalls.takeAll()) {
      pending.upstream?.settle();
      pending.over?.('failed');
      this.#policy.callLost(pending, reason);
    }
    for (const { client, id } of questions.takeAll()) {
      const params = { requestId: id, reason: 'the server ended' };
      client.listener.fromServer(notificationFrame(CANCELED, params));
    }
  }

  /** Withdraws what the client had open; the server goes on without it. */
  withdraw(link: UpstreamLink | undefined, client: LegacyClient): void {
    client.left();
    // Most clients that stand for one request have their answer by then, and have set up nothing.
    if (client.openCalls === 0 && !this.#state.remembers(client)) return;
    if (link === undefined) return void this.#state.forget(client);
    this.#abandonAll(link, client);
    const { questions, levels } = this.#state;
    for (const { serverId } of questions.takeOf(client)) link.send(errorFrame(serverId, rpcErrorOf(CLIENT_LEFT)));
    const level = levels.get(client);
    if (level !== undefined) this.#policy.levelUnwanted(level, link);
    const mostVerbose = level && levels.mostVerbose();
    for (const uri of this.#state.forget(client)) this.#state.tell(link, UNSUBSCRIBE, { uri });
    const wanted = mostVerbose && levels.mostVerbose();
    if (wanted !== undefined && wanted !== mostVerbose) this.#state.tell(link, SET_LEVEL, { level: wanted });
  }

  #abandonAll(link: UpstreamLink, client: LegacyClient): void {
    const { pendingCalls, withdrawn } = this.#state;
    for (const pending of pendingCalls.takeOf(client)) {
      const { call, upstream, bytes } = pending;
      withdrawn.add(bytes);
      const params = { requestId: call.upstreamId, reason: 'the client left' };
      upstream?.cancel('client');
      link.send(notificationFrame(CANCELED, params), upstream);
      this.#abandon(pending);
    }
  }
}

function answer(client: LegacyClient, call: Call, frame: Frame): void {
  client.listener.fromServer(frame, call);
}

/** Answers for the server, which need not be asked; its pipe has capacity. */
function succeed(client: LegacyClient, request: Frame, call: Call): true {
  answer(client, call, resultFrame(idToken(request), {}));
  return true;
}

const CLIENT_LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client that was asked is gone.');
