import { BridgeError } from '../../../errors.ts';
import { showUrl } from '../../../http/shown-url.ts';
import type { UpstreamDialer } from '../../../relay/ports.ts';
import type { StreamAnswer } from '../ask/ask-event-stream.ts';
import type { HttpAnswer } from '../ask/ask-http.ts';
import { describeAttempt, describeOutcome } from '../ask/describe-outcome.ts';
import { outcomeOfError, outcomeOfResponse } from '../ask/http-outcome.ts';
import type { Request } from '../found-link.ts';
import type { HttpAttempts } from './detect-http.ts';
import { OwnAttempts, type OwnAttemptsOptions } from './own-attempts.ts';
import { Trial, type TrialEnd } from './trial.ts';
import { untilAborted } from './wait.ts';

export interface TrialAttemptsOptions extends OwnAttemptsOptions {
  /** The client's `initialize`. */
  readonly request: Request;
  readonly streamable: UpstreamDialer;
  readonly httpSse: UpstreamDialer;
}

/** Attempts with the `initialize` of the client that waits; only `server/discover` is the bridge's own. */
export class TrialAttempts implements HttpAttempts {
  readonly #options: TrialAttemptsOptions;
  readonly #own: OwnAttempts;
  /** The last one that got an answer of the server's. */
  #answered: Trial | undefined;
  #running: Trial | undefined;

  constructor(options: TrialAttemptsOptions) {
    this.#options = options;
    this.#own = new OwnAttempts(options);
  }

  discover(revision: string): Promise<HttpAnswer> {
    return this.#own.discover(revision);
  }

  async initialize(): Promise<HttpAnswer> {
    const { end, tookMs } = await this.#try(this.#options.streamable);
    if (end.kind === 'failed') return { ...this.#failure(end.error), tookMs };
    const outcome = outcomeOfResponse(end.frame, undefined);
    return { outcome, head: undefined, error: undefined, words: describeOutcome(outcome), tookMs };
  }

  /** HTTP+SSE it is once the server answers over it, whatever the answer. */
  async eventStream(): Promise<StreamAnswer> {
    const { end, tookMs } = await this.#try(this.#options.httpSse);
    if (end.kind === 'failed') return { ...this.#failure(end.error), tookMs };
    return { outcome: { kind: 'found' }, head: undefined, error: undefined, words: 'answered', tookMs };
  }

  async #try(dialer: UpstreamDialer): Promise<{ end: TrialEnd; tookMs: number }> {
    const { request, signal, target } = this.#options;
    signal.throwIfAborted();
    const startedMs = target.http.clock.now();
    const trial = new Trial(dialer, request);
    this.#running = trial;
    const end = await untilAborted(trial.ended, signal);
    this.#running = undefined;
    if (end.kind === 'answered') {
      this.#answered?.link.close(NOT_THIS_WAY);
      this.#answered = trial;
    } else {
      trial.link.close(NOT_THIS_WAY);
    }
    return { end, tookMs: target.http.clock.now() - startedMs };
  }

  #failure(error: BridgeError): Omit<HttpAnswer, 'tookMs'> {
    const outcome = outcomeOfError(error);
    const words = describeAttempt(outcome, error, { name: showUrl(this.#options.target.url) });
    return { outcome, head: undefined, error, words };
  }

  /** The link of the attempt that was answered; from here on it is the caller's. */
  take(): Trial | undefined {
    const trial = this.#answered;
    this.#answered = undefined;
    return trial;
  }

  /** Ends what nobody has taken. May be called twice. */
  close(): void {
    this.#running?.link.close(NOT_THIS_WAY);
    this.#answered?.link.close(NOT_THIS_WAY);
    this.#running = undefined;
    this.#answered = undefined;
  }
}

const NOT_THIS_WAY = new BridgeError('ERR_SESSION_CLOSED', 'This was only a trial.');
