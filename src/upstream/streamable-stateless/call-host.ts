import type { BridgeError } from '../../errors.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallQuestion } from '../remote/login-question.ts';
import type { RemoteEnvironment } from '../remote/remote-environment.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Who carries a message of the client to the server and brings back what belongs to it. */
export interface Call {
  /** What the client has sent. */
  readonly frame: Frame;
  /** The call it belongs to, if any. */
  readonly exchange: Exchange | undefined;
  /** Its bytes have not all been handed to the system. Set by the host. */
  isWaiting: boolean;
  /** Called once, after the call is known to its host. */
  start(): void;
  /** The client gave it up, or is gone: nothing more is said to the host. */
  abort(): void;
  pause(): void;
  resume(): void;
}

/** What all requests of one link have in common. */
export interface StatelessEnvironment extends RemoteEnvironment {
  /** Headers of the link's client, which go along with messages that belong to none of its requests. */
  readonly forwarded: Lane['headers'];
}

/** What a call needs of its link. */
export interface StatelessCallHost {
  readonly environment: StatelessEnvironment;
  readonly tools: ToolHeaders;
  /** Asks the client to have its user log in. */
  readonly question: CallQuestion;
  /** The client is full: what is posted now is not read before `resume`. */
  readonly isPaused: boolean;
  /** For requests to the server; never used twice. */
  nextId(): number;
  /** Returns a random number from 0 to 1. */
  random(): number;
  /** The message's bytes are gone. */
  left(call: Call): void;
  /** The server responds. */
  responded(): void;
  /** On the way to the answer. As the client is to see it. */
  notify(call: Call, notification: Frame): void;
  /** The server refuses the request as no modern server does; the refusal follows. */
  doubted(call: Call): void;
  /** Each call ends with one of the three. The answer is the server's, or one of the bridge in its place. */
  answered(call: Call, answer: Frame): void;
  /** No answer will come. */
  failed(call: Call, error: BridgeError): void;
  /** Nothing is answered: it was a notification. */
  ended(call: Call): void;
}
