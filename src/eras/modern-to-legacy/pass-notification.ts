import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import { stripMetadata } from '../../mcp/classify/request-metadata.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import { SessionLink, type SessionLinkUser } from './pool/session-link.ts';
import type { SessionWanted } from './pool/session-wanted.ts';

export interface NotificationRoute {
  readonly pool: LegacyPool;
  readonly wanted: SessionWanted;
  readonly log: Logger;
  /** Called when the server can take the next notification. */
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
export function passNotification(notification: Frame, route: NotificationRoute): boolean {
  return new PassingNotification(notification, route).start();
}

class PassingNotification implements SessionLinkUser {
  readonly #notification: Frame;
  readonly #route: NotificationRoute;
  readonly #link: SessionLink;
  #state: PassingState = 'waiting';
  #isHeldUp = false;

  constructor(notification: Frame, route: NotificationRoute) {
    this.#notification = notification;
    this.#route = route;
    this.#link = new SessionLink(route.pool, route.wanted, this);
  }

  /** False: it is held up. */
  start(): boolean {
    try {
      this.#link.open();
    } catch (thrown) {
      this.#dropped({ err: thrown });
      return true;
    }
    this.#isHeldUp = this.#state !== 'over';
    return !this.#isHeldUp;
  }

  opened(): void {
    this.#state = 'sent';
    if (this.#link.send(stripMetadata(this.#notification))) this.#leave();
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
    if (this.#state !== 'over')
      this.#route.log.debug({ method, ...reason }, 'notification dropped: no server takes it');
    this.#leave();
  }

  #leave(): void {
    this.#state = 'over';
    this.#link.close();
    if (this.#isHeldUp) this.#route.drained();
  }
}
