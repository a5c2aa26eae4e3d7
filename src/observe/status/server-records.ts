/** Keeps what is known of each server beyond its figures: its stderr, its restarts, and the names of its tools. */
import { readToolPage } from '../../mcp/classify/tool-list.ts';
import { showHidden, toPrintable } from '../../printable.ts';
import type { ServerObserver } from '../../relay/observer.ts';
import type { Frame } from '../../wire/frame.ts';
import type { ServerDetail, TimedText } from './status-document.ts';

/** Lines of stderr that are kept, as many as fit on a screen. */
export const MAX_STDERR_LINES = 50;
export const MAX_RESTARTS = 20;
/** Names of tools that are kept. The number of further ones is shown. */
export const MAX_TOOLS = 200;
/** Limit of a kept text. A name of a tool has 128 characters at most, according to the specification. */
export const MAX_TEXT_LENGTH = 300;
const MAX_NAME_LENGTH = 128;
/** Servers that are remembered, past ones included. The oldest one is forgotten first. */
export const MAX_RECORDS = 500;
/** Larger lists are not read. */
const MAX_LIST_BYTES = 1024 * 1024;
/** Lists of one server that are read in a second. Stateless clients may ask for the list before each call. */
const MAX_LISTS_PER_SECOND = 10;
/** A list may come in pages, so a tool counts as removed only when the lists of this time lack it. */
const SAME_LIST_MS = 60_000;

/** Keeps a record of each server, by its name. */
export class ServerRecords {
  readonly #wallClock: () => number;
  readonly #records = new Map<string, ServerRecord>();

  constructor(options: { readonly wallClock: () => number }) {
    this.#wallClock = options.wallClock;
  }

  /** Returns the record of a server that is served. A server that is configured anew goes on with its record. */
  observe(server: string): ServerObserver {
    const known = this.#records.get(server);
    if (known !== undefined) return known;
    const [oldest] = this.#records.keys();
    if (this.#records.size >= MAX_RECORDS && oldest !== undefined) this.#records.delete(oldest);
    const record = new ServerRecord(this.#wallClock);
    this.#records.set(server, record);
    return record;
  }

  /** Returns what is known of a server, which may be nothing. */
  detailOf(server: string): ServerDetail {
    return { server, ...(this.#records.get(server)?.report() ?? NOTHING) };
  }
}

const NOTHING: Omit<ServerDetail, 'server'> = { startedAtMs: null, stderr: [], restarts: [], tools: [], moreTools: 0 };

class ServerRecord implements ServerObserver {
  readonly #wallClock: () => number;
  readonly #stderr = new LatestTexts(MAX_STDERR_LINES);
  readonly #restarts = new LatestTexts(MAX_RESTARTS);
  /** Time at which a list last had each tool. */
  readonly #tools = new Map<string, number>();
  /** Tools of the latest lists that exceed the limit. */
  #moreTools = 0;
  #startedAtMs: number | null = null;
  /** The second in which a list was last read, and how many were read in it. */
  #listSecond = 0;
  #listsInSecond = 0;

  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  started(): void {
    this.#startedAtMs = this.#wallClock();
  }

  wrote(line: string): void {
    this.#stderr.add({ atMs: this.#wallClock(), text: line });
  }

  failed(reason: string): void {
    this.#restarts.add({ atMs: this.#wallClock(), text: reason });
  }

  listedTools(answer: Frame): void {
    const nowMs = this.#wallClock();
    if (answer.bytes.length > MAX_LIST_BYTES || !this.#mayRead(nowMs)) return;
    const page = readToolPage(answer);
    if (page === undefined) return;
    this.#moreTools = 0;
    for (const { name } of page.tools) {
      const shown = copyOf(showHidden(name.slice(0, MAX_NAME_LENGTH)));
      if (this.#tools.has(shown) || this.#tools.size < MAX_TOOLS) this.#tools.set(shown, nowMs);
      else this.#moreTools += 1;
    }
    for (const [name, seenMs] of this.#tools) if (nowMs - seenMs > SAME_LIST_MS) this.#tools.delete(name);
  }

  #mayRead(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#listSecond) this.#listsInSecond = 0;
    this.#listSecond = second;
    this.#listsInSecond += 1;
    return this.#listsInSecond <= MAX_LISTS_PER_SECOND;
  }

  report(): Omit<ServerDetail, 'server'> {
    return {
      startedAtMs: this.#startedAtMs,
      stderr: this.#stderr.oldestFirst,
      restarts: this.#restarts.oldestFirst.toReversed(),
      tools: [...this.#tools.keys()].sort(),
      moreTools: this.#moreTools,
    };
  }
}

/** The latest texts, each printable, cut and with the time of its arrival. */
class LatestTexts {
  readonly #max: number;
  readonly #texts: TimedText[] = [];
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add({ atMs, text }: TimedText): void {
    this.#texts[this.#count % this.#max] = { atMs, text: copyOf(toPrintable(text, MAX_TEXT_LENGTH)) };
    this.#count += 1;
  }

  get oldestFirst(): readonly TimedText[] {
    const next = this.#count % this.#max;
    return [...this.#texts.slice(next), ...this.#texts.slice(0, next)];
  }
}

/** Copies a text, since a part of a string keeps the whole string in memory. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
