import type { BridgeError } from '../../errors.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallQuestion } from '../remote/login-question.ts';
import type { StatelessServer } from './server-state.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Carries a message of the client to the server, and returns the messages that belong to it. */
export interface PostedMessage {
  /** The message as the client has sent it. */
  readonly frame: Frame;
  /** The client's call that the message belongs to, if any. */
  readonly call: Call | undefined;
  /** Set by the backlog of the link, in which the message counts until its bytes have been sent. */
  isWaiting: boolean;
  /** Called once, after the message is known to its host. */
  start(): void;
  /** Gives the message up, because the client canceled it or is gone. The host is not called anymore. */
  abort(): void;
  /** Called while the client does not read. Responses are then not read before `resume`. */
  pause(): void;
  resume(): void;
}

/** The client of one or many posted messages, as these see it. */
export interface StatelessCallHost {
  readonly server: StatelessServer;
  readonly tools: ToolHeaders;
  readonly cookies: SessionCookies;
  /** Asks the client to have its user log in. */
  readonly question: CallQuestion;
  /** Returns the headers of the client that are forwarded with a request. */
  forwardedWith(call: Call | undefined): Lane['headers'];
  /** Called when the message's bytes have been sent. */
  left(posted: PostedMessage): void;
  /** Drops a message in the response to a request that a modern server must not send there. */
  drop(frame: Frame): void;
  /** Passes on a notification that came before the answer, in the form that the client is to see. */
  notify(posted: PostedMessage, notification: Frame): void;
  /**
   * Called with the answer to a request, of the server or of the bridge in its place. Each message ends with one of
   * `answered`, `failed` and `ended`.
   */
  answered(posted: PostedMessage, answer: Frame): void;
  /** Called when a message has failed and will not be answered. */
  failed(posted: PostedMessage, error: BridgeError): void;
  /** Called when a notification has been delivered, which needs no answer. */
  ended(posted: PostedMessage): void;
}
