import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * What the user lets pass of the HTTP requests of a link's client. Each request of the client carries its own values.
 * What no request causes, as streams, answers and the end of the session, carries those of the latest one: a token may
 * be renewed in the middle of a session.
 */
export class CallerHeaders {
  #latest: Lane['headers'];

  constructor(headers?: Lane['headers']) {
    this.#latest = headers;
  }

  get latest(): Lane['headers'] {
    return this.#latest;
  }

  /** A message is about to be sent. */
  note(frame: Frame, exchange: Exchange | undefined): void {
    if (exchange !== undefined && frame.kind === 'request') this.#latest = exchange.lane.headers;
  }

  /** The headers that go with this message. */
  of(frame: Frame, exchange: Exchange | undefined): Lane['headers'] {
    return exchange !== undefined && frame.kind === 'request' ? exchange.lane.headers : this.#latest;
  }
}
