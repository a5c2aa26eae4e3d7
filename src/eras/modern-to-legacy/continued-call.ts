import { BridgeError } from '../../errors.ts';
import { refuseInput } from '../../mcp/classify/input-required.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import { CANCELED, PING } from '../../mcp/vocabulary/methods.ts';
import { featuresOf, type RevisionFeatures, servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { Call, type Lane } from '../../relay/call.ts';
import type { LinkOwner, ServerFault, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../wire/write-message.ts';
import { type Answered, modernFailure, modernOutcome, refusedAnswer } from './call-messages.ts';
import { CallNotices } from './call-notices.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import { type Follower, ParkedCall, type ParkedCallHost, type ParkingServices } from './questions/parked-call.ts';
import { CallQuestions } from './questions/questions.ts';
import { CallProgress, type Continuation, type WaitingCall } from './questions/waiting-call.ts';

/** Leads to no client: each of its requests has a lane of its own. */
const LANE: Lane = { isOpen: true };
const CALL_OVER = new BridgeError('ERR_SESSION_CLOSED', 'The client does not follow this call anymore.');

/** The server is told that nobody waits anymore, which takes a moment on its way; then the connection ends. */
export const WITHDRAWAL_MS = 5000;

export interface ContinuingServices extends ParkingServices {
  /** Goes on with sessions that were opened elsewhere. */
  readonly dialer: SessionDialer;
  /** All calls that go on here. */
  readonly continued: Set<ContinuedCall>;
}

export interface ContinuedCallOptions {
  readonly services: ContinuingServices;
  readonly wanted: SessionWanted;
  /** The client's request that comes back to the call, which is the same as its first one. */
  readonly request: Frame;
  /** The id that the call had at the other bridge. */
  readonly id: string;
  readonly waiting: WaitingCall;
}

/**
 * A call that another bridge has sent to the server, and that waited for its client there. It is not sent again: the server is
 * asked for the rest of what it says, and gets the answers to what it has asked. It has a connection to itself.
 */
export class ContinuedCall implements ParkedCallHost, LinkOwner {
  readonly #options: ContinuedCallOptions;
  readonly #park: ParkedCall;
  readonly #call: Call;
  readonly #progress = new CallProgress();
  readonly #questions: CallQuestions;
  readonly #notices: CallNotices;
  #link: UpstreamLink | undefined;
  #cancelTimer: () => void = () => {};

  constructor(options: ContinuedCallOptions) {
    this.#options = options;
    const { services, wanted, request, id, waiting } = options;
    const { deps, calls } = services;
    const { principal } = wanted;
    const serverInfo = readServerInfo(waiting.server.serverInfo);
    this.#park = new ParkedCall({ services, host: this, principal, request, serverInfo, first: undefined, id });
    const { request: sent, lastEventId } = waiting.resumable;
    this.#call = new Call(sent.id ?? 0, sent.method ?? '', LANE, undefined, deps.clock.now());
    this.#progress.moved(sent, lastEventId);
    this.#questions = new CallQuestions({ asker: this.#park, send: (message) => void this.#link?.send(message) });
    this.#notices = new CallNotices({
      noticed: this.#park,
      openBytes: () => calls.openBytes(principal),
      logLevel: undefined,
      log: deps.log,
    });
  }

  /** Waits for the client. Throws a BridgeError when the server cannot be reached now, and when too many calls wait. */
  start(): ParkedCall {
    const { services, waiting } = this.#options;
    const { session, resumable } = waiting;
    session.isHandedOver = true;
    session.positions = this.#progress;
    session.resumes(resumable);
    const link = services.dialer.dial(this, session);
    this.#link = link;
    services.continued.add(this);
    const questions = waiting.questions.flatMap(([key, question]) => {
      const { id: questionId } = question;
      if (questionId === undefined) return [];
      return { key, question: this.#questions.open(question, questionId, this.#features) };
    });
    if (!this.#park.restore({ ...waiting, questions })) {
      this.#leaveServer();
      throw TOO_MANY;
    }
    link.send(resumable.request, this.#call);
    return this.#park;
  }

  get #features(): RevisionFeatures {
    return featuresOf(servedRevision(this.#options.waiting.server.protocolVersion).id);
  }

  // ---- what the park decides

  followed(follower: Follower): void {
    this.#notices.followed(follower);
  }

  /** The call runs at the server, which has the answers. */
  proceed(): void {}

  over(): void {
    if (this.#call.state.kind !== 'open') return this.#leaveServer();
    const { clock } = this.#options.services.deps;
    this.#call.cancel('client');
    const params = { requestId: this.#call.id, reason: 'the client left' };
    this.#link?.send(notificationFrame(CANCELED, params), this.#call);
    this.#cancelTimer = clock.after(WITHDRAWAL_MS, () => this.#leaveServer());
  }

  forgotten(): void {
    this.#notices.clear();
  }

  continuation(): Continuation | undefined {
    const { session, server } = this.#options.waiting;
    const resumable = this.#progress.find(this.#call.id);
    return resumable && { session, resumable, server, serverIdOf: ({ id }) => id };
  }

  handedOver(): void {
    this.#leaveServer();
  }

  /** Closes the connection. The session may have other calls, so it does not end with this one. */
  #leaveServer(): void {
    this.#cancelTimer();
    this.#options.services.continued.delete(this);
    this.#link?.close(CALL_OVER);
    this.#link = undefined;
  }

  // ---- what comes from the server

  serverFound(link: UpstreamLink): void {
    this.#link = link;
  }

  fromServer(frame: Frame, call: Call | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        if (frame.id === this.#call.id) this.#answered(frame);
        return;
      case 'notification':
        if (frame.method === CANCELED) this.#questions.withdrawn(frame);
        else if (call === this.#call) this.#notices.take(frame, call);
        return;
      case 'request':
        if (frame.id !== undefined) this.#asked(frame, frame.id, call);
    }
  }

  #answered(answer: Frame): void {
    if (this.#call.state.kind !== 'open') return;
    this.#call.settle();
    const answered: Answered = { request: this.#options.request, server: this.#options.waiting.server };
    this.#park.finished(answer.kind === 'error' ? modernFailure(answer, answered) : modernOutcome(answer, answered));
  }

  /** A question on another stream is asked in a call that went on elsewhere, or in none. */
  #asked(question: Frame, id: JsonRpcId, call: Call | undefined): void {
    if (question.method === PING) return void this.#link?.send(resultFrame(id, {}));
    if (call !== this.#call) return void this.#link?.send(refusedAnswer(question));
    const { bytes, method = '', payloadStart } = question;
    const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
    const refusal = refuseInput(this.#options.wanted.capabilities.capabilities, method, params);
    if (refusal !== undefined) return void this.#link?.send(errorFrame(id, refusal));
    this.#questions.asked(question, this.#features);
  }

  serverFault({ error, kind, id }: ServerFault): void {
    if (kind === 'request' && id !== undefined) return void this.#link?.send(errorFrame(id, rpcErrorOf(error)));
    if (kind !== 'notification') this.lost(error);
  }

  serverDrained(): void {
    for (const follower of this.#park.followers) follower.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.lost(reason);
  }

  /** The answer will not come. */
  lost(reason: BridgeError): void {
    if (this.#call.state.kind === 'open') this.#call.settle();
    this.#park.lost(errorFrame(0, rpcErrorOf(reason)));
    this.#leaveServer();
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  'This replica has no capacity for another call that waits for its client; send the same request again later.',
  { retryAfterMs: 1000 },
);
