import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { INITIALIZE, INITIALIZED, type SET_LEVEL, type SUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { type Fields, readPayload } from '../../mcp/vocabulary/payload.ts';
import type { Frame } from '../../wire/frame.ts';

/** What a session is brought to: a `SessionState`, or the sum of those that share a connection. */
export interface RestorableSession {
  /** The parameters to open it with; undefined: they are not known. */
  readonly initialize: Fields | undefined;
  /** False: the client has not finished its handshake, and goes on with it itself. */
  readonly isInitialized: boolean;
  /** What the server is asked for when the handshake is done; read only then. */
  wishes(): readonly Wish[];
  /** What the server says to one of them. */
  settled(wish: Wish, isGranted: boolean): void;
  /** "Look again" for what may have changed while nobody was told. */
  missed(): readonly Frame[];
}

export type Wish =
  | { readonly method: typeof SET_LEVEL; readonly params: { readonly level: string } }
  | { readonly method: typeof SUBSCRIBE; readonly params: { readonly uri: string } };

/** How long the server has for its answer to `initialize`, and what is said of one that takes longer. */
export interface TimeLimit {
  readonly clock: Clock;
  /** 0: no limit. */
  readonly timeoutMs: number;
  readonly exceeded: () => BridgeError;
}

/** A connection that is to be brought up to date. After `Restoration.cancel` it is told nothing more. */
export interface RestoredConnection {
  readonly log: Logger;
  /**
   * - `pipe`: messages arrive as they were sent, so nobody has to wait for the answers to the wishes.
   * - `separate`: each travels by itself and may overtake others, so each waits for the answer to the one before.
   */
  readonly delivery: 'pipe' | 'separate';
  /** `perRequest`: the connection itself limits each request. */
  readonly timeLimit: TimeLimit | 'perRequest';
  /** Sends a request under an id of its own. `answered` is called at most once: not when the connection is lost. */
  ask(method: string, params: object, answered: (answer: Frame | BridgeError) => void): void;
  /** Sends a notification; `taken` is called when the server has it, or never will. */
  tell(method: string, taken: () => void): void;
  /** The server has opened a session. False: the client cannot go on in it, and no more is said in it. */
  offered(offer: Fields, answer: Frame): boolean;
  /** Why a server opens no session, as the user is told it. */
  refusal(answer: Frame): BridgeError;
  /** The client may go on, with `missed` as the first that it hears. Once at most, like `failed`. */
  restored(missed: readonly Frame[]): void;
  failed(reason: BridgeError): void;
}

/** Opens a session on a new connection and brings it to where the one before was. What the server refuses is forgotten. */
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
    // Whoever starts it is prepared for its end only then.
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
