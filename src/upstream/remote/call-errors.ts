import { BridgeError } from '../../errors.ts';
import { showUrl } from '../../http/shown-url.ts';
import { oversizedError } from '../oversized-error.ts';
import type { OversizedText } from './answer-reader.ts';

/** What can be wrong with the answer to one message, in words. */
export class CallErrors {
  readonly #server: string;
  readonly #method: string;

  constructor(url: URL, method: string | undefined) {
    this.#server = showUrl(url);
    this.#method = method ?? 'a message';
  }

  oversized({ byteLength, kind }: OversizedText, maxMessageBytes: number): BridgeError {
    const bytes = `at least ${byteLength}`;
    return oversizedError({ sender: `The server at ${this.#server}`, bytes, maxMessageBytes, kind });
  }

  noAnswer(): BridgeError {
    const message = `The server at ${this.#server} ended its response to ${this.#method} without an answer in it.`;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
  }

  notAnAnswer(status: number, contentType: string): BridgeError {
    const type = contentType.split(';', 1)[0]?.slice(0, 50);
    return new BridgeError(
      'ERR_UPSTREAM_PROTOCOL',
      `The server at ${this.#server} answered ${this.#method} with ${status} and ${type} instead of JSON or an event stream. Check that this is the URL of the MCP endpoint.`,
    );
  }

  resumeRefused(status: number): BridgeError {
    const message = `The server at ${this.#server} answered ${status} to the attempt to resume a stream.`;
    return new BridgeError('ERR_UPSTREAM_HTTP', message, { data: { status } });
  }

  /** The stream broke before the answer; `lastEventId` undefined: it could not even be tried to resume it. */
  lost(lastEventId: string | undefined, cause: BridgeError | undefined): BridgeError {
    // What broke it off was our own limit, which has a name.
    if (cause?.code === 'ERR_UPSTREAM_TIMEOUT') return cause;
    const why = lastEventId === undefined ? 'gave no event id to resume it from' : 'could not resume it';
    const detail = cause === undefined ? '' : ` ${cause.message}`;
    return new BridgeError(
      'ERR_UPSTREAM_CLOSED',
      `The server at ${this.#server} broke the stream off before the answer to ${this.#method}, and ${why}; whether the call was carried out is not known.${detail}`,
      { cause },
    );
  }
}

/** The limit on the whole call: trying further is what it forbids. */
export function isCallLimit(error: BridgeError | undefined): boolean {
  return error?.code === 'ERR_UPSTREAM_TIMEOUT' && error.data?.phase === 'call';
}
