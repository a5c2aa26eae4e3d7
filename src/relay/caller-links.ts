import type { Logger } from 'pino';
import { BridgeError, toBridgeError } from '../errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { CallerEnvironment, ServerListener, UpstreamDialer, UpstreamLink } from './ports.ts';

/** Callers that have a link; the one that was heard of longest ago loses its own. */
export const MAX_CALLER_LINKS = 64;

/** Who sends something that belongs to no call. */
export interface NotifyingCaller {
  readonly principal: string;
  readonly environment?: CallerEnvironment | undefined;
}

/**
 * Ways to the server for notifications that come alone, as each does of a modern client over HTTP: one for each caller,
 * for a link that is closed at once might take with it what it was given.
 */
export class CallerLinks {
  readonly #dialer: UpstreamDialer;
  readonly #log: Logger;
  /** The one used last is at the end. */
  readonly #links = new Map<string, UpstreamLink>();

  constructor(dialer: UpstreamDialer, log: Logger) {
    this.#dialer = dialer;
    this.#log = log;
  }

  /** Nobody waits for a notification; what cannot be sent is dropped. */
  send(notification: Frame, caller: NotifyingCaller): void {
    try {
      this.#take(caller).send(notification);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      this.#log.debug({ code: error.code, method: notification.method }, `notification dropped: ${error.message}`);
    }
  }

  #take({ principal, environment }: NotifyingCaller): UpstreamLink {
    const link = this.#links.get(principal) ?? this.#dial(principal, environment);
    this.#links.delete(principal);
    this.#links.set(principal, link);
    const [oldest] = this.#links;
    if (this.#links.size > MAX_CALLER_LINKS && oldest !== undefined) {
      this.#links.delete(oldest[0]);
      oldest[1].close(MADE_WAY);
    }
    return link;
  }

  #dial(principal: string, environment: CallerEnvironment | undefined): UpstreamLink {
    const listener: ServerListener = {
      fromServer: () => {},
      serverFault: () => {},
      serverDrained: () => {},
      serverClosed: () => {
        if (this.#links.get(principal) === link) this.#links.delete(principal);
      },
    };
    const link = this.#dialer.dial(listener, { principal, metadata: undefined }, environment);
    return link;
  }

  close(reason: BridgeError): void {
    for (const link of this.#links.values()) link.close(reason);
    this.#links.clear();
  }
}

const MADE_WAY = new BridgeError('ERR_SESSION_CLOSED', 'Others have sent notifications since.');
