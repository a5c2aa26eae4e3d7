import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { type Authenticator, authenticatedNameOf, leaveOf } from '../../http/auth/callers.ts';

/** Interval at which the callers of open streams are authenticated again. Checking a token takes microseconds. */
export const ADMISSION_CHECK_MS = 10_000;

/** A response over HTTP, or the stream of gRPC that a request has opened. */
type OpenStream = Pick<Writable, 'destroy' | 'destroyed' | 'once'>;

interface Admitted {
  readonly request: IncomingMessage;
  readonly authenticator: Authenticator;
}

/**
 * Open streams and WebSockets of callers that presented a token. Other requests are authenticated on arrival; these
 * stay open, so their token is checked again at intervals. They end if the token was revoked, has expired, or now
 * belongs to another caller. If keys cannot be fetched, so that nothing can be decided, they stay open.
 */
export class AdmittedStreams {
  readonly #clock: Clock;
  readonly #open = new Map<OpenStream, Admitted>();
  #stopChecking: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(request: IncomingMessage, response: OpenStream, authenticator: Authenticator): void {
    this.#open.set(response, { request, authenticator });
    this.#stopChecking ??= this.#clock.every(ADMISSION_CHECK_MS, () => this.#check());
    response.once('close', () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.close();
    });
  }

  /** Stops checking. */
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

  #end(request: IncomingMessage, response: OpenStream, reason: BridgeError | undefined): void {
    if (response.destroyed || !this.#open.delete(response)) return;
    const leave = leaveOf(request);
    if (leave === undefined || reason === undefined) response.destroy();
    else leave(reason);
  }
}
