/** Follows an event stream of a running bridge, for the views in a terminal. */
import { type ErrorEvent, EventSource, type FetchLikeResponse } from 'eventsource';
import { fetchOverSocket } from '../../http/client/socket-agent.ts';
import { showUrl } from '../../http/shown-url.ts';
import { isSocketUrl, reachedAs, showSocketPath } from '../../http/socket-addresses.ts';

export interface BridgeEventsOptions {
  /** The URL of the event stream. */
  readonly url: URL;
  /** Bearer token; undefined: none is needed. */
  readonly token: string | undefined;
  /** Limit of one event. */
  readonly maxEventBytes: number;
  /** The types of events that are followed, and what takes the data of each. */
  readonly types: Readonly<Record<string, (data: string) => void>>;
  readonly opened: () => void;
  /** The connection was lost, or there was none. Another one is tried until `close` is called. */
  readonly lost: () => void;
  /** The bridge has answered with this status. There are no further events. */
  readonly refused: (status: number) => void;
  /** An event exceeds the limit. There are no further events. */
  readonly exceeded: () => void;
  /** The stream is read no further until this resolves; undefined: it is read as it comes. */
  readonly ready?: () => Promise<void>;
}

export class BridgeEvents {
  readonly #options: BridgeEventsOptions;
  readonly #source: EventSource;

  constructor(options: BridgeEventsOptions) {
    this.#options = options;
    this.#source = new EventSource(options.url, { fetch: (url, init) => this.#fetch(url, init) });
    for (const [type, take] of Object.entries(options.types)) {
      this.#source.addEventListener(type, ({ data }) => take(data));
    }
    this.#source.addEventListener('open', () => options.opened());
    this.#source.addEventListener('error', ({ code }: ErrorEvent) => {
      if (code === undefined) options.lost();
      else options.refused(code);
    });
  }

  close(): void {
    this.#source.close();
  }

  async #fetch(url: string | URL, init: RequestInit): Promise<FetchLikeResponse> {
    const response = await this.#request(url, init);
    const { body, status, redirected, headers } = response;
    const limit = new EventLimit(this.#options);
    return { body: body?.pipeThrough(limit) ?? null, url: response.url, status, redirected, headers };
  }

  #request(url: string | URL, init: RequestInit): Promise<Response> {
    const { token, url: own } = this.#options;
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('Authorization', `Bearer ${token}`);
    if (isSocketUrl(own)) {
      return fetchOverSocket(own, { headers, signal: init.signal ?? undefined });
    }
    // A redirect is an error: the token must not be sent to another place.
    return fetch(url, { ...init, headers, redirect: 'error' });
  }
}

const NEWLINE = 0x0a;

/** Passes a stream of events on while no event exceeds the limit. */
class EventLimit extends TransformStream<Uint8Array, Uint8Array> {
  constructor({ maxEventBytes, exceeded, ready }: BridgeEventsOptions) {
    let eventBytes = 0;
    let endedInNewline = false;
    super({
      async transform(chunk, controller) {
        const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        const end = text.lastIndexOf('\n\n');
        if (end !== -1) eventBytes = text.length - end;
        else if (endedInNewline && text[0] === NEWLINE) eventBytes = text.length;
        else eventBytes += text.length;
        endedInNewline = text.at(-1) === NEWLINE;
        if (eventBytes > maxEventBytes) {
          exceeded();
          return controller.terminate();
        }
        if (ready !== undefined) await ready();
        controller.enqueue(chunk);
      },
    });
  }
}

/**
 * Returns the URL of something below the status of a bridge. A path before `/status`, as a proxy may add, is kept; of a
 * server's endpoint only the origin is used.
 *
 * @param url any address of the bridge
 * @param path what to find there, like `/status/events`
 */
export function urlBelowStatus(url: URL, path: string): URL {
  const before = /^(.*)\/status(?:\.json|\/events|\/messages)?\/?$/.exec(url.pathname)?.[1] ?? '';
  const found = new URL(url.origin);
  found.pathname = `${before}${path}`;
  return reachedAs(url, found);
}

export function nameOf(url: URL): string {
  return isSocketUrl(url) ? showUrl(url) : url.href;
}

export function nameBridge(url: URL): string {
  return isSocketUrl(url) ? showSocketPath(url.socketPath) : url.origin;
}

/** Says why a bridge that has answered with this status shows nothing, and the way out. */
export function refusalMessage(url: URL, status: number, token: string | undefined): string {
  const origin = nameBridge(url);
  const href = nameOf(url);
  switch (status) {
    case 401:
    case 403:
      return token === undefined
        ? `${origin} shows its status only with its status token (HTTP ${status}): add --status-token env:NAME or --status-token file:PATH, with the token that it was started with.`
        : `${origin} does not accept the token of --status-token (HTTP ${status}): give the one that it was started with, as env:NAME or file:PATH.`;
    case 404:
      return `There is no ${href}: is that mcp-portage, and does it show its status?`;
    case 503:
      return `Too many watch the status of ${origin} already; HTTP 503.`;
    default:
      return `${href} answered HTTP ${status}.`;
  }
}
