import { BridgeError } from '../../errors.ts';
import { respondError } from '../../http/server/respond.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import { type ForwardedRequest, Forwarding, type ForwardOutcome } from './forwarding.ts';
import type { EntryLinks } from './link/entry-links.ts';

/** Limit of requests forwarded at a time, open streams included. */
const MAX_FORWARDED = 4096;

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_FORWARDED} requests are being passed on to other replicas, the most allowed; try again later.`,
  { retryAfterMs: 1000 },
);

/** Forwards requests to the replicas that have their session or call. */
export class Forwarder {
  readonly #links: Pick<EntryLinks, 'reach'>;
  #open = 0;

  constructor(links: Pick<EntryLinks, 'reach'>) {
    this.#links = links;
  }

  /**
   * Calls `done` once. The outcome is `responded` if a response has been sent or begun; otherwise no response has been
   * sent.
   */
  forward(owner: Owner, forwarded: ForwardedRequest, done: (outcome: ForwardOutcome) => void): void {
    if (this.#open >= MAX_FORWARDED) {
      respondError(forwarded.response, TOO_MANY);
      return done({ kind: 'responded' });
    }
    this.#open += 1;
    new Forwarding(forwarded, (outcome) => {
      this.#open -= 1;
      done(outcome);
    }).start(owner, this.#links);
  }
}
