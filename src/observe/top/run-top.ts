import type { Clock } from '../../deps.ts';
import type { StatusDocument } from '../status/status-document.ts';
import { BridgeEvents, nameBridge, nameOf, refusalMessage, urlBelowStatus } from './bridge-events.ts';
import type { Key } from './keys.ts';
import { renderScreen, renderText } from './render-top.ts';
import { TerminalScreen, type TopTerminal } from './terminal-screen.ts';
import { type Line, paintLine } from './text-layout.ts';
import { FIRST_VIEW, press, type Seen, type ViewState } from './view-state.ts';

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
export type TopOutput =
  | { readonly kind: 'screen'; readonly terminal: TopTerminal }
  | { readonly kind: 'text'; readonly columns: () => number; readonly write: (text: string) => void };

/**
 * - `ended`: by the user or the signal, or because everything is printed.
 * - `failed`: the message is for the user, and printable.
 */
export type TopEnding =
  | { readonly kind: 'ended' }
  | {
      readonly kind: 'failed';
      readonly code: 'ERR_UPSTREAM_CONNECT' | 'ERR_UPSTREAM_AUTH';
      readonly message: string;
    };

const REDRAW_MS = 1000;
/** Time limit of the first status, which a bridge sends at once. */
const FIRST_STATUS_MS = 10_000;
/** Limit of an event; the status of many replicas with a thousand servers each is smaller. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024;
/** Limit of a status's members, of which it has tens. */
const MAX_MEMBERS = 200;
/** Shows the content of the status page in a terminal, from the same event stream. Never rejects. */
export function runTop(options: TopOptions): Promise<TopEnding> {
  return new Promise((resolve) => new Top(options, resolve).start());
}

class Top {
  readonly #options: TopOptions;
  readonly #end: (ending: TopEnding) => void;
  readonly #url: URL;
  readonly #screen: TerminalScreen | undefined;
  #events: BridgeEvents | undefined;
  #stopRedrawing: (() => void) | undefined;
  #stopWaiting: (() => void) | undefined;
  #status: StatusDocument | undefined;
  /** Time by which the bridge's clock is ahead of ours. */
  #aheadMs = 0;
  #notice = '';
  #state: ViewState = FIRST_VIEW;
  #seen: Seen = { servers: [], hiddenLines: 0 };

  constructor(options: TopOptions, end: (ending: TopEnding) => void) {
    this.#options = options;
    this.#end = end;
    this.#url = eventsUrl(options.url, options.replicas);
    const { output, clock } = options;
    if (output.kind === 'text') return;
    this.#screen = new TerminalScreen(output.terminal, clock, {
      pressed: (key) => this.#pressed(key),
      resized: () => this.#draw(),
      ended: () => this.#close({ kind: 'ended' }),
    });
  }

  start(): void {
    const { signal, output, clock } = this.#options;
    if (signal.aborted) return this.#end({ kind: 'ended' });
    signal.addEventListener('abort', this.#aborted);
    this.#events = new BridgeEvents({
      url: this.#url,
      token: this.#options.token,
      maxEventBytes: MAX_EVENT_BYTES,
      types: {
        status: (data) => this.#received(data, (members) => members),
        change: (data) => this.#received(data, (members) => ({ ...this.#status, ...members })),
      },
      opened: () => undefined,
      lost: () => this.#lost(),
      refused: (status) => this.#refused(status),
      exceeded: () => this.#fail(noStatusOf(this.#url)),
    });
    if (output.kind === 'screen') this.#stopRedrawing = clock.every(REDRAW_MS, () => this.#draw());
    this.#stopWaiting = clock.after(FIRST_STATUS_MS, () => this.#tookTooLong());
  }

  #tookTooLong(): void {
    const message = `${nameOf(this.#url)} has sent no status for ${FIRST_STATUS_MS / 1000} s: is that mcp-portage?`;
    this.#fail(message);
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
    } catch {
      return this.#fail(noStatusOf(this.#url));
    }
    this.#draw();
  }

  #refused(status: number): void {
    const isRefused = status === 401 || status === 403;
    const message = refusalMessage(this.#url, status, this.#options.token);
    this.#fail(message, isRefused ? 'ERR_UPSTREAM_AUTH' : 'ERR_UPSTREAM_CONNECT');
  }

  #lost(): void {
    if (this.#status === undefined) {
      return this.#fail(`Cannot reach ${nameBridge(this.#url)}: is mcp-portage running there?`);
    }
    // EventSource reconnects by itself.
    this.#notice = 'connection lost, trying again';
    this.#draw();
  }

  #pressed(key: Key): void {
    const state = press(this.#state, key, this.#seen);
    if (state === 'quit') return this.#close({ kind: 'ended' });
    this.#state = state;
    this.#draw();
  }

  #draw(): void {
    if (this.#status === undefined) return;
    try {
      this.#show(this.#status);
    } catch {
      // The content is untrusted: the server at this address may not be mcp-portage, so any member may be missing.
      this.#fail(noStatusOf(this.#url));
    }
  }

  #show(status: StatusDocument): void {
    const { output, wallClock } = this.#options;
    const common = { url: nameBridge(this.#url), notice: this.#notice, nowMs: wallClock() + this.#aheadMs };
    if (output.kind === 'text') {
      const columns = output.columns();
      output.write(`${paint(renderText(status, { ...common, columns }), columns, false).join('\n')}\n`);
      return this.#close({ kind: 'ended' });
    }
    const { terminal } = output;
    const columns = terminal.columns();
    const keyboard = terminal.keyboard === undefined ? 'none' : 'present';
    const { lines, seen } = renderScreen(status, this.#state, { ...common, columns, rows: terminal.rows(), keyboard });
    this.#seen = seen;
    this.#screen?.draw(paint(lines, columns, terminal.hasColors));
  }

  #fail(message: string, code: 'ERR_UPSTREAM_CONNECT' | 'ERR_UPSTREAM_AUTH' = 'ERR_UPSTREAM_CONNECT'): void {
    this.#close({ kind: 'failed', code, message });
  }

  #close(ending: TopEnding): void {
    this.#options.signal.removeEventListener('abort', this.#aborted);
    this.#events?.close();
    this.#stopRedrawing?.();
    this.#stopWaiting?.();
    this.#screen?.close();
    this.#status = undefined;
    this.#end(ending);
  }
}

function paint(lines: readonly Line[], columns: number, hasColors: boolean): string[] {
  return lines.map((line) => paintLine(line, columns, hasColors));
}

function noStatusOf(url: URL): string {
  return `What ${nameOf(url)} sends is no status of mcp-portage.`;
}

/** Returns the URL of the event stream. @param url any address of the bridge */
export function eventsUrl(url: URL, replicas: 'one' | 'all' = 'one'): URL {
  const events = urlBelowStatus(url, '/status/events');
  if (replicas === 'all') events.searchParams.set('replicas', 'all');
  return events;
}
