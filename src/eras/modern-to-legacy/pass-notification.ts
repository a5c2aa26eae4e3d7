import type { Logger } from 'pino';
import { BridgeError } from '../../errors.ts';
import { stripMetadata } from '../../mcp/request-metadata.ts';
import type { RpcError } from '../../mcp/rpc-errors.ts';
import type { LegacyPool } from '../../relay/legacy-pool.ts';
import type { SessionWanted } from '../../relay/session-wanted.ts';
import type { Frame } from '../../wire/frame.ts';
import { LegacySeat, type SeatUser } from './legacy-seat.ts';

export interface NotificationWay {
  readonly pool: LegacyPool;
  readonly wanted: SessionWanted;
  readonly log: Logger;
  /** There is room for the next one. */
  readonly drained: () => void;
}

/**
 * - `waiting`: there is no server yet.
 * - `sent`: it is full, and has not taken all of it.
 * - `over`: taken, or never will be.
 */
type PassingState = 'waiting' | 'sent' | 'over';

/**
 * Sends a notification of an extension to a session of its client, as soon as there is one. Nobody waits for it. False: the
 * server has not taken it yet; `drained` follows.
 */
export function passNotification(notification: Frame, way: NotificationWay): boolean {
  return new PassingNotification(notification, way).start();
}

class PassingNotification implements SeatUser {
  readonly #notification: Frame;
  readonly #way: NotificationWay;
  readonly #seat = new LegacySeat(this);
  #state: PassingState = 'waiting';
  #isHeldUp = false;

  constructor(notification: Frame, way: NotificationWay) {
    this.#notification = notification;
    this.#way = way;
  }

  /** False: it is held up. */
  start(): boolean {
    const { pool, wanted } = this.#way;
    try {
      this.#seat.open(pool, wanted);
    } catch (thrown) {
      this.#dropped({ err: thrown });
      return true;
    }
    this.#isHeldUp = this.#state !== 'over';
    return !this.#isHeldUp;
  }

  opened(): void {
    this.#state = 'sent';
    if (this.#seat.send(stripMetadata(this.#notification))) this.#leave();
  }

  refused({ code }: RpcError): void {
    this.#dropped({ code });
  }

  lost({ code }: BridgeError): void {
    this.#dropped({ code });
  }

  fromServer(): void {}

  /** The session may say so before it serves. */
  serverDrained(): void {
    if (this.#state === 'sent') this.#leave();
  }

  #dropped(reason: object): void {
    const { method } = this.#notification;
    if (this.#state !== 'over') this.#way.log.debug({ method, ...reason }, 'notification dropped: no server takes it');
    this.#leave();
  }

  #leave(): void {
    this.#state = 'over';
    this.#seat.close(SENT);
    if (this.#isHeldUp) this.#way.drained();
  }
}

const SENT = new BridgeError('ERR_SESSION_CLOSED', 'There was only a notification to send.');
