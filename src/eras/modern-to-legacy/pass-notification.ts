import type { Logger } from 'pino';
import type { BridgeError } from '../../errors.ts';
import { isAmbiguous } from '../../mcp/classify/ambiguity.ts';
import { stripMetadata } from '../../mcp/classify/request-metadata.ts';
import type { Frame } from '../../wire/frame.ts';
import type { DescribedClient } from './client-descriptions.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import { SessionUser } from './pool/session-user.ts';

export interface NotificationRoute {
  readonly pool: LegacyPool;
  readonly client: DescribedClient;
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
  if (route.client.refusal !== undefined || isAmbiguous(notification)) return true;
  return new PassingNotification(notification, route).start();
}

class PassingNotification extends SessionUser {
  readonly #notification: Frame;
  readonly #route: NotificationRoute;
  #state: PassingState = 'waiting';
  #isHeldUp = false;

  constructor(notification: Frame, route: NotificationRoute) {
    super(route.pool, route.client.wanted);
    this.#notification = notification;
    this.#route = route;
  }

  /** False: it is held up. */
  start(): boolean {
    try {
      this.joinSession();
    } catch (thrown) {
      this.#dropped({ err: thrown });
      return true;
    }
    this.#isHeldUp = this.#state !== 'over';
    return !this.#isHeldUp;
  }

  opened(): void {
    this.#state = 'sent';
    if (this.send(stripMetadata(this.#notification))) this.#leave();
  }

  lost({ code }: BridgeError): void {
    this.#dropped({ code });
  }

  heard(): void {}

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
    this.leaveSession();
    if (this.#isHeldUp) this.#route.drained();
  }
}
