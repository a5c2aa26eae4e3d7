import type { OversizedLine } from '../../wire/ndjson.ts';

/**
 * What carries messages both ways to one client for as long as both want: a pair of pipes, a byte stream, a WebSocket.
 * What it reads it hands over in pieces, and takes the messages out of a piece when it is asked to; in between they
 * wait, for a client may be held back while the end of what it says has still to be seen.
 */
export interface MessageConnection {
  /** How a message is called in errors: what the client knows it as. */
  readonly unit: 'line' | 'message';
  /** Tells the listener of the messages in this piece. Called in the order of `read`, once for each piece. */
  take(piece: Buffer): void;
  /** So it does with what is left when all pieces are taken and no more come. */
  takeRest(): void;
  /** Stop and go on reading. */
  pause(): void;
  resume(): void;
  /** Writes a message, whose bytes must not change afterwards. False: full, `drained` follows; it is taken all the same. */
  send(message: Buffer): boolean;
  /** Written, and not taken by the operating system yet. */
  readonly waitingBytes: number;
  /** Resolves when what was written has left for the client, or cannot. */
  flush(): Promise<void>;
  /** Lets the client go, whatever waits for it. The listener hears of it as of a client that is gone. */
  cut(): void;
}

/** What a connection tells of its client; nothing while it is being made. */
export interface ConnectionListener {
  /** Something was read, and waits for `take`. */
  read(piece: Buffer): void;
  message(bytes: Buffer): void;
  /** A message over the limit went by and was dropped. */
  oversized(message: OversizedLine): void;
  /** The client says no more. It may still read. May be called several times. */
  inputEnded(): void;
  /** The incoming message and those of others exceed the limit. Nothing more is read. */
  crowded(): void;
  /** There is capacity again after `send` had none. */
  drained(): void;
  /** Nobody reads what is written any more. May be called several times. */
  readerGone(): void;
}

/** Makes the connection, which reads from then on. */
export type OpenConnection = (listener: ConnectionListener) => MessageConnection;
