import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { type Authenticator, authenticatedNameOf, leaveOf } from '../../http/auth/callers.ts';

/** How often it is asked whether callers that stay connected may still do so. Looking at a token takes microseconds. */
export const ADMISSION_CHECK_MS = 10_000;

interface Admitted {
  readonly request: IncomingMessage;
  readonly authenticator: Authenticator;
}

/**
 * Streams and WebSockets of callers that have shown a token. Each request is judged when it arrives; these go on for as long
 * as both sides want, so their token is looked at again: one that was withdrawn, has expired, or belongs to somebody else
 * now ends them. What cannot be decided, because keys cannot be fetched, changes nothing.
 */
export class AdmittedStreams {
  readonly #clock: Clock;
  readonly #open = new Map<ServerResponse, Admitted>();
  #stopChecking: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(request: IncomingMessage, response: ServerResponse, authenticator: Authenticator): void {
    this.#open.set(response, { request, authenticator });
    this.#stopChecking ??= this.#clock.every(ADMISSION_CHECK_MS, () => this.#check());
    response.once('close', () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.close();
    });
  }

  /** Looks no more. */
  close(): void {
    this.#stopChecking?.();
    this.#stopChecking = undefined;
  }

  #check(): void {
    for (const [response, { request, authenticator }] of [...this.#open]) {
      authenticator.authenticate(request, (verdict) => {
        if (verdict.kind === 'principal') {
          if (verdict.principal !== authenticatedNameOf(request)) this.#end(request, response, undefined);
        } else if (verdict.refusal.challenge !== undefined) this.#end(request, response, verdict.refusal.error);
      });
    }
  }

  #end(request: IncomingMessage, response: ServerResponse, reason: BridgeError | undefined): void {
    if (response.destroyed || !this.#open.delete(response)) return;
    const leave = leaveOf(request);
    if (leave === undefined || reason === undefined) response.destroy();
    else leave(reason);
  }
}
