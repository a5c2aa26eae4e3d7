import type { ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import { respondText } from '../../http/server/respond.ts';
import { type DetailOf, findDetail, type Status } from './create-status.ts';
import type { StatusDocument } from './status-document.ts';

/** Limit of the watchers, which are meant to be people; programs that collect figures use `/metrics`. */
export const MAX_WATCHERS = 16;
export const UPDATE_MS = 1000;
/** A comment is sent after this much silence, since proxies close silent connections. */
export const KEEP_ALIVE_MS = 15_000;
/** A watcher that has read nothing for this long is disconnected, which frees its slot. */
export const STALLED_MS = 60_000;

const RETRY_S = 10;
const KEEP_ALIVE = ': keep-alive\n\n';

/** An open event stream. */
interface Watcher {
  readonly response: ServerResponse;
  /** Name of the server whose detail it is sent; undefined: the only one, if there is only one. */
  readonly server: string | undefined;
  /** The detail that it has, as JSON. */
  detail: string;
  /**
   * - `current`: it was sent everything.
   * - `behind`: its connection was full at the latest change, so it gets the whole document next.
   */
  state: 'current' | 'behind';
  lastWriteMs: number;
}

/** The parts of the document as JSON, by name. */
type Sections = ReadonlyMap<string, string>;

/**
 * Streams the status to watchers: first the whole document (event `status`), then about once a second the parts that
 * have changed (event `change`). Nothing is queued: a watcher that reads too slowly skips updates. Without watchers
 * nothing runs.
 */
export class StatusStream {
  readonly #status: Status;
  readonly #detailOf: DetailOf;
  readonly #clock: Clock;
  readonly #watchers = new Set<Watcher>();
  #stop: (() => void) | undefined;
  /** Sections that the `current` watchers have. */
  #told: Sections = new Map();

  constructor(status: Status, detailOf: DetailOf, clock: Clock) {
    this.#status = status;
    this.#detailOf = detailOf;
    this.#clock = clock;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /**
   * Starts an event stream on the response, or rejects the request.
   *
   * @param server name of the server whose detail is sent; undefined: the only one, if there is only one
   */
  watch(response: ServerResponse, server: string | undefined): void {
    if (this.#watchers.size >= MAX_WATCHERS) return refuse(response);
    response.writeHead(200, {
      'Content-Type': EVENT_STREAM_TYPE,
      'Cache-Control': 'no-store, no-transform',
      'X-Content-Type-Options': 'nosniff',
      // Keeps nginx and similar proxies from buffering the events.
      'X-Accel-Buffering': 'no',
    });
    const watcher: Watcher = { response, server, detail: '', state: 'behind', lastWriteMs: this.#clock.now() };
    response.on('close', () => this.#remove(watcher));
    this.#watchers.add(watcher);
    this.#stop ??= this.#clock.every(UPDATE_MS, () => this.#update());
    // All watchers get the same changes, so the others are updated now, too.
    this.#update();
  }

  close(): void {
    for (const { response } of this.#watchers) response.end();
    this.#watchers.clear();
    this.#rest();
  }

  #remove(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size === 0) this.#rest();
  }

  #rest(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#told = new Map();
  }

  #update(): void {
    const nowMs = this.#clock.now();
    const document = this.#status();
    const sections = sectionsOf(document);
    const changed = [...sections].filter(([name, json]) => name !== 'atMs' && this.#told.get(name) !== json);
    this.#told = sections;
    for (const watcher of this.#watchers) {
      if (watcher.response.writableNeedDrain) {
        if (changed.length > 0) watcher.state = 'behind';
        if (nowMs - watcher.lastWriteMs >= STALLED_MS) watcher.response.destroy();
        continue;
      }
      const detail = JSON.stringify(findDetail(document, this.#detailOf, watcher.server));
      const ofServer: Members = detail === watcher.detail ? [] : [['detail', detail]];
      const news = watcher.state === 'behind' ? [...sections, ['detail', detail] as const] : [...changed, ...ofServer];
      const type = watcher.state === 'behind' ? 'status' : 'change';
      watcher.state = 'current';
      watcher.detail = detail;
      if (type === 'status') write(watcher, event(type, news), nowMs);
      else if (news.length > 0) write(watcher, event(type, [['atMs', sections.get('atMs') ?? '0'], ...news]), nowMs);
      else if (nowMs - watcher.lastWriteMs >= KEEP_ALIVE_MS) write(watcher, KEEP_ALIVE, nowMs);
    }
  }
}

function write(watcher: Watcher, text: string, nowMs: number): void {
  watcher.lastWriteMs = nowMs;
  watcher.response.write(text);
}

/** Returns all parts but the detail, which is not the same for all watchers. */
function sectionsOf({ detail: _detail, ...document }: StatusDocument): Sections {
  return new Map(Object.entries(document).map(([name, value]) => [name, JSON.stringify(value) ?? 'null']));
}

type Members = readonly (readonly [name: string, json: string])[];

/** Composes an event with one line of data, since this JSON has no line breaks. */
function event(type: 'status' | 'change', members: Members): string {
  const data = members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',');
  return `event: ${type}\ndata: {${data}}\n\n`;
}

function refuse(response: ServerResponse): void {
  response.setHeader('Retry-After', RETRY_S);
  const text = `${MAX_WATCHERS} others watch the status already. Close one of them, or read /status.json.\n`;
  respondText(response, 503, text);
}
