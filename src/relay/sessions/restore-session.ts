import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { INITIALIZE, INITIALIZED, type SET_LEVEL, type SUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { type Fields, readPayload } from '../../mcp/vocabulary/payload.ts';
import type { Frame } from '../../wire/frame.ts';

/** The state that a session is restored to: a `SessionState`, or the sum of the states that share a connection. */
export interface RestorableSession {
  /** Parameters of `initialize`. Undefined if they are not known. */
  readonly initialize: Fields | undefined;
  /** False if the client has not finished its handshake and will finish it itself. */
  readonly isInitialized: boolean;
  /** Returns the requests that restore the state. Called when the handshake is done. */
  wishes(): readonly Wish[];
  /** Called with the server's answer to one of them. */
  settled(wish: Wish, isGranted: boolean): void;
  /**
   * Returns notifications for changes that the client may have missed, so that it reads the changed lists and resources
   * again.
   */
  missed(): readonly Frame[];
}

export type Wish =
  | { readonly method: typeof SET_LEVEL; readonly params: { readonly level: string } }
  | { readonly method: typeof SUBSCRIBE; readonly params: { readonly uri: string } };

/** Time for the server's answer to `initialize`, and the error when it is exceeded. */
export interface TimeLimit {
  readonly clock: Clock;
  /** 0 means no limit. */
  readonly timeoutMs: number;
  readonly exceeded: () => BridgeError;
}

/** A connection on which a session is restored. After `Restoration.cancel` nothing here is called anymore. */
export interface RestoredConnection {
  readonly log: Logger;
  /**
   * - `pipe`: messages arrive in order, so all wishes are sent without waiting for the answers.
   * - `separate`: each message travels by itself and may overtake others, so each wish waits for the answer to the one
   *   before.
   */
  readonly delivery: 'pipe' | 'separate';
  /** `perRequest`: the connection itself limits each request. */
  readonly timeLimit: TimeLimit | 'perRequest';
  /**
   * Sends a request under an id of its own. `answered` is called at most once, and never after the connection was lost.
   */
  ask(method: string, params: object, answered: (answer: Frame | BridgeError) => void): void;
  /** Sends a notification. `taken` is called when the server has it, or will never have it. */
  tell(method: string, taken: () => void): void;
  /**
   * Called with the server's answer to `initialize`. Returns false if the client cannot continue in the new session;
   * then nothing more is sent in it.
   */
  offered(offer: Fields, answer: Frame): boolean;
  /** Returns the error that tells the user why the server opened no session. */
  refusal(answer: Frame): BridgeError;
  /** The client may continue, with `missed` as its first messages. Either this or `failed` is called, at most once. */
  restored(missed: readonly Frame[]): void;
  failed(reason: BridgeError): void;
}

/**
 * Opens a session on a new connection and restores the state of the session before. A wish that the server refuses is
 * dropped from the state.
 */
export class Restoration {
  readonly #session: RestorableSession;
  readonly #connection: RestoredConnection;
  #wishes: Iterator<Wish> = [].values();
  #stopTimer: () => void = () => {};
  #isOver = false;

  constructor(session: RestorableSession, connection: RestoredConnection) {
    this.#session = session;
    this.#connection = connection;
  }

  start(): void {
    const { timeLimit } = this.#connection;
    const { initialize } = this.#session;
    // The failure is reported later, because the caller of `start` is not ready for it before `start` returns.
    if (initialize === undefined) return queueMicrotask(() => this.#fail(NOT_KEPT));
    if (timeLimit !== 'perRequest' && timeLimit.timeoutMs !== 0) {
      const { clock, timeoutMs, exceeded } = timeLimit;
      this.#stopTimer = clock.after(timeoutMs, () => this.#fail(exceeded()));
    }
    this.#connection.ask(INITIALIZE, initialize, (answer) => this.#opened(answer));
  }

  cancel(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  #opened(answer: Frame | BridgeError): void {
    if (this.#isOver) return;
    this.#stopTimer();
    if (answer instanceof BridgeError) return this.#fail(answer);
    const offer = answer.kind === 'result' ? readPayload(answer) : undefined;
    if (offer === undefined) return this.#fail(this.#connection.refusal(answer));
    if (!this.#connection.offered(offer, answer)) return this.cancel();
    if (!this.#session.isInitialized) return this.#restored([]);
    this.#connection.tell(INITIALIZED, () => {
      this.#wishes = this.#session.wishes().values();
      this.#askNext();
    });
  }

  #askNext(): void {
    while (!this.#isOver) {
      const { value: wish, done } = this.#wishes.next();
      if (done === true) return this.#restored(this.#session.missed());
      this.#connection.ask(wish.method, wish.params, (answer) => this.#answered(wish, answer));
      if (this.#connection.delivery === 'separate') return;
    }
  }

  #answered(wish: Wish, answer: Frame | BridgeError): void {
    if (answer instanceof BridgeError) return this.#fail(answer);
    const isGranted = answer.kind === 'result';
    if (!isGranted) this.#connection.log.warn({ method: wish.method }, NOT_RESTORED);
    this.#session.settled(wish, isGranted);
    if (this.#connection.delivery === 'separate') this.#askNext();
  }

  #restored(missed: readonly Frame[]): void {
    this.cancel();
    this.#connection.restored(missed);
  }

  #fail(reason: BridgeError): void {
    if (this.#isOver) return;
    this.cancel();
    this.#connection.failed(reason);
  }
}

const NOT_RESTORED = 'the server did not restore what the client had set up in the session before';
const NOT_KEPT = new BridgeError(
  'ERR_UPSTREAM_PROTOCOL',
  'No other session can be opened for this client: its initialize parameters were too large to be kept.',
);
