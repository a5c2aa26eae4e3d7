import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { BridgeError } from '../../errors.ts';
import { findDeprecation, HTTP_SSE_DEPRECATED_ON } from '../../mcp/vocabulary/deprecations.ts';

/** The announced end of HTTP+SSE. */
export interface AnnouncedSunset {
  /** The date as shown to people. */
  readonly date: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly afterward: 'refuse' | 'serve';
}

export interface SunsetOptions extends AnnouncedSunset {
  readonly wallClock: () => number;
  /** Returns the URL of Streamable HTTP for this client. */
  readonly streamableUrl: (request: IncomingMessage) => string;
}

/** Tells clients of HTTP+SSE when the transport ends and what replaces it. */
export class Sunset {
  readonly #options: SunsetOptions;
  readonly #headers: OutgoingHttpHeaders;

  constructor(options: SunsetOptions) {
    this.#options = options;
    this.#headers = {
      // [RFC 9745 2.1] A date of RFC 9651, which is in seconds.
      Deprecation: `@${Date.parse(HTTP_SSE_DEPRECATED_ON) / 1000}`,
      // [RFC 8594 3] An HTTP-date.
      Sunset: new Date(options.atMs).toUTCString(),
    };
  }

  /** Sets the headers that every response of HTTP+SSE carries. */
  announce(request: IncomingMessage, response: ServerResponse): void {
    for (const [name, value] of Object.entries(this.#headers)) response.setHeader(name, value as string);
    const links = [
      `<${findDeprecation('http-sse').source}>; rel="deprecation"; type="text/html"`,
      // [RFC 5829 3.4]
      `<${this.#options.streamableUrl(request)}>; rel="successor-version"`,
    ];
    response.setHeader('Link', links.join(', '));
  }

  /**
   * Returns the error of a request after the sunset; undefined: the transport is still served. The clock is read for
   * each request, since the bridge may be running when the sunset comes.
   */
  refusalOf(request: IncomingMessage): BridgeError | undefined {
    const { atMs, date, afterward, wallClock, streamableUrl } = this.#options;
    if (afterward === 'serve' || wallClock() <= atMs) return undefined;
    return new BridgeError(
      'ERR_HTTP_GONE',
      `HTTP+SSE has ended here (${date}); use Streamable HTTP, at ${streamableUrl(request)}.`,
    );
  }
}
