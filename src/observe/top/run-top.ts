import { type ErrorEvent, EventSource, type FetchLikeResponse } from 'eventsource';
import type { Clock } from '../../deps.ts';
import { fetchOverSocket } from '../../http/client/socket-agent.ts';
import { showUrl } from '../../http/shown-url.ts';
import { isSocketUrl, reachedAs, showSocketPath } from '../../http/socket-addresses.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { renderTop } from './render-top.ts';
import { paintLine } from './text-layout.ts';

export interface TopOptions {
  /** Any address of the bridge: its own, that of an endpoint, or that of the status page behind a proxy. */
  readonly url: URL;
  /** Bearer token; undefined: none is needed. */
  readonly token: string | undefined;
  /** Shows only the replica that answers, or all of them. */
  readonly replicas: 'one' | 'all';
  readonly output: TopOutput;
  readonly clock: Clock;
  readonly wallClock: () => number;
  /** Ends the view. */
  readonly signal: AbortSignal;
}

/**
 * - `screen`: a terminal, which is redrawn until the view ends.
 * - `text`: anything else, which gets the current status once.
 */
export type TopOutput = {
  readonly columns: () => number;
  readonly hasColors: boolean;
  readonly write: (text: string) => void;
} & ({ readonly kind: 'screen'; readonly rows: () => number } | { readonly kind: 'text' });

/** `failed`: the message is for the user, and printable. */
export type TopEnding = { readonly kind: 'ended' } | { readonly kind: 'failed'; readonly message: string };

const REDRAW_MS = 1000;
/** Time limit of the first status, which a bridge sends at once. */
const FIRST_STATUS_MS = 10_000;
/** Limit of an event; the status of many replicas with a thousand servers each is smaller. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024;
/** Limit of a status's members, of which it has tens. */
const MAX_MEMBERS = 200;
/** Switches to the alternate screen without a cursor; LEAVE restores what was there before. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const TO_START = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Shows the content of the status page in a terminal, from the same event stream. Never rejects. */
export function runTop(options: TopOptions): Promise<TopEnding> {
  return new Promise((resolve) => new Top(options, resolve).start());
}

class Top {
  readonly #options: TopOptions;
  readonly #end: (ending: TopEnding) => void;
  readonly #url: URL;
  #source: EventSource | undefined;
  #stopRedrawing: (() => void) | undefined;
  #stopWaiting: (() => void) | undefined;
  #status: StatusDocument | undefined;
  /** Time by which the bridge's clock is ahead of ours. */
  #aheadMs = 0;
  #notice = '';
  #drawn = '';

  constructor(options: TopOptions, end: (ending: TopEnding) => void) {
    this.#options = options;
    this.#end = end;
    this.#url = eventsUrl(options.url, options.replicas);
  }

  start(): void {
    const { signal, output, clock } = this.#options;
    if (signal.aborted) return this.#end({ kind: 'ended' });
    signal.addEventListener('abort', this.#aborted);
    const source = new EventSource(this.#url, { fetch: (url, init) => this.#fetch(url, init) });
    this.#source = source;
    source.addEventListener('status', ({ data }) => this.#received(data, (members) => members));
    source.addEventListener('change', ({ data }) =>
      this.#received(data, (members) => ({ ...this.#status, ...members })),
    );
    source.addEventListener('error', (event) => this.#broke(event));
    if (output.kind === 'screen') this.#stopRedrawing = clock.every(REDRAW_MS, () => this.#draw());
    this.#stopWaiting = clock.after(FIRST_STATUS_MS, () => this.#tookTooLong());
  }

  #tookTooLong(): void {
    const message = `${nameOf(this.#url)} has sent no status for ${FIRST_STATUS_MS / 1000} s: is that mcp-portage?`;
    this.#close({ kind: 'failed', message });
  }

  async #fetch(url: string | URL, init: RequestInit): Promise<FetchLikeResponse> {
    const response = await this.#request(url, init);
    const { body, status, redirected, headers } = response;
    const limit = new EventLimit(() => this.#close({ kind: 'failed', message: noStatusOf(this.#url) }));
    return { body: body?.pipeThrough(limit) ?? null, url: response.url, status, redirected, headers };
  }

  #request(url: string | URL, init: RequestInit): Promise<Response> {
    const { token } = this.#options;
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('Authorization', `Bearer ${token}`);
    if (isSocketUrl(this.#url)) {
      return fetchOverSocket(this.#url, { headers, signal: init.signal ?? undefined });
    }
    // A redirect is an error: the token must not be sent to another place.
    return fetch(url, { ...init, headers, redirect: 'error' });
  }

  readonly #aborted = (): void => this.#close({ kind: 'ended' });

  #received(data: string, merge: (members: object) => object): void {
    try {
      const merged = merge(JSON.parse(data)) as StatusDocument;
      if (Object.keys(merged).length > MAX_MEMBERS) throw new Error('too many members');
      this.#stopWaiting?.();
      this.#status = merged;
      this.#aheadMs = merged.atMs - this.#options.wallClock();
      this.#notice = '';
      this.#draw();
    } catch {
      // The content is untrusted: the server at this address may not be mcp-portage, so any member may be missing.
      this.#close({ kind: 'failed', message: noStatusOf(this.#url) });
    }
  }

  #broke({ code }: ErrorEvent): void {
    if (code !== undefined) return this.#close({ kind: 'failed', message: refusalMessage(this.#url, code) });
    if (this.#status === undefined) {
      return this.#close({
        kind: 'failed',
        message: `Cannot reach ${nameBridge(this.#url)}: is mcp-portage running there?`,
      });
    }
    // EventSource reconnects by itself.
    this.#notice = 'connection lost, trying again';
    this.#draw();
  }

  #draw(): void {
    const status = this.#status;
    if (status === undefined) return;
    const { output, wallClock } = this.#options;
    const view = { url: nameBridge(this.#url), notice: this.#notice, nowMs: wallClock() + this.#aheadMs };
    const columns = output.columns();
    const paint = (rows: number): string[] =>
      renderTop(status, { ...view, columns, rows }).map((line) => paintLine(line, columns, output.hasColors));
    if (output.kind === 'text') {
      output.write(`${paint(Number.POSITIVE_INFINITY).join('\n')}\n`);
      return this.#close({ kind: 'ended' });
    }
    const frame =
      TO_START +
      paint(output.rows())
        .map((line) => line + CLEAR_LINE)
        .join('\r\n') +
      CLEAR_BELOW;
    if (frame === this.#drawn) return;
    output.write(this.#drawn === '' ? ENTER + frame : frame);
    this.#drawn = frame;
  }

  #close(ending: TopEnding): void {
    this.#options.signal.removeEventListener('abort', this.#aborted);
    this.#source?.close();
    this.#stopRedrawing?.();
    this.#stopWaiting?.();
    if (this.#drawn !== '') this.#options.output.write(LEAVE);
    this.#drawn = '';
    this.#status = undefined;
    this.#end(ending);
  }
}

const NEWLINE = 0x0a;

/** Passes a stream of events on while no event exceeds MAX_EVENT_BYTES. */
class EventLimit extends TransformStream<Uint8Array, Uint8Array> {
  /** @param exceeded called before the stream is broken off */
  constructor(exceeded: () => void) {
    let eventBytes = 0;
    let endedInNewline = false;
    super({
      transform(chunk, controller) {
        const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        const end = text.lastIndexOf('\n\n');
        if (end !== -1) eventBytes = text.length - end;
        else if (endedInNewline && text[0] === NEWLINE) eventBytes = text.length;
        else eventBytes += text.length;
        endedInNewline = text.at(-1) === NEWLINE;
        if (eventBytes <= MAX_EVENT_BYTES) return controller.enqueue(chunk);
        exceeded();
        controller.terminate();
      },
    });
  }
}

function noStatusOf(url: URL): string {
  return `What ${nameOf(url)} sends is no status of mcp-portage.`;
}

/**
 * Returns the URL of the event stream. A path before `/status`, as a proxy may add, is kept; of a server's endpoint
 * only the origin is used.
 */
export function eventsUrl(url: URL, replicas: 'one' | 'all' = 'one'): URL {
  const before = /^(.*)\/status(?:\.json|\/events)?\/?$/.exec(url.pathname)?.[1] ?? '';
  const events = new URL(url.origin);
  events.pathname = `${before}/status/events`;
  if (replicas === 'all') events.searchParams.set('replicas', 'all');
  return reachedAs(url, events);
}

function nameOf(url: URL): string {
  return isSocketUrl(url) ? showUrl(url) : url.href;
}

function nameBridge(url: URL): string {
  return isSocketUrl(url) ? showSocketPath(url.socketPath) : url.origin;
}

function refusalMessage(url: URL, code: number): string {
  const origin = nameBridge(url);
  const href = nameOf(url);
  switch (code) {
    case 401:
    case 403:
      return `${origin} shows its status only to those who have a token for it; HTTP ${code}.`;
    case 404:
      return `There is no ${href}: is that mcp-portage, and does it show its status?`;
    case 503:
      return `Too many watch the status of ${origin} already; HTTP 503.`;
    default:
      return `${href} answered HTTP ${code}.`;
  }
}
