import type { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallQuestion } from '../remote/login-question.ts';
import type { PostedCall, PostHost } from '../remote/posted-call.ts';
import type { PostedMessage, StatelessEnvironment } from './posting.ts';
import type { StatelessServer } from './server-state.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Carries a message of the client to the server, and returns the messages that belong to it. */
export interface Call {
  /** The message as the client has sent it. */
  readonly frame: Frame;
  /** The client's call that the message belongs to, if any. */
  readonly exchange: Exchange | undefined;
  /** Set by the backlog of the link, in which the call counts until its bytes have been sent. */
  isWaiting: boolean;
  /** Called once, after the call is known to its host. */
  start(): void;
  /** Ends the call, because the client canceled it or is gone. The host is not called any more. */
  abort(): void;
  pause(): void;
  resume(): void;
}

/** The link as its calls use it. */
export interface StatelessCallHost {
  readonly environment: StatelessEnvironment;
  readonly tools: ToolHeaders;
  readonly server: StatelessServer;
  /** Asks the client to have its user log in. */
  readonly question: CallQuestion;
  /** True if the client does not read. Responses to new requests are then not read before `resume`. */
  readonly isPaused: boolean;
  /** Called when the message's bytes have been sent. */
  left(call: Call): void;
  /** Called when the server responds. */
  responded(): void;
  /** Posts a message now. */
  post(owner: PostHost, message: PostedMessage): PostedCall;
  /** Notes the form of the id under which the server answered a request. */
  matched(answer: Frame, request: Frame): void;
  /** Drops a message in the response to a request that a modern server must not send there. */
  drop(frame: Frame): void;
  /** Passes on a notification that came before the answer, in the form that the client is to see. */
  notify(call: Call, notification: Frame): void;
  /**
   * Ends a call with an answer, of the server or of the bridge in its place. Each call ends with one of `answered`,
   * `failed` and `ended`.
   */
  answered(call: Call, answer: Frame): void;
  /** Ends a call that will not be answered. */
  failed(call: Call, error: BridgeError): void;
  /** Ends a call for a notification, which needs no answer. */
  ended(call: Call): void;
}
