import { RecentNames } from '../collections/bounded-collections.ts';
import type { Clock } from '../deps.ts';
import type { MessageTaps, TappedClient } from '../relay/message-tap.ts';
import type { Frame } from '../wire/frame.ts';
import { type Entry, type Journal, Origin } from './entry.ts';
import { recordedLine } from './recorded-message.ts';
import { type MessageFormat, type ShownMessage, showMessage } from './shown-message.ts';
import { CallTap, ConnectionTap, SessionTap } from './taps.ts';

/** Gets the lines of a recording, such as a file. */
export interface RecordingSink {
  readonly format: MessageFormat;
  /** Takes lines without their line breaks. Never waits. */
  take(lines: readonly string[]): void;
}

export interface RecorderOptions {
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly sinks: readonly RecordingSink[];
}

/** Time for which messages are collected, so that a batch of lines costs one write. */
const COLLECT_MS = 50;
/**
 * Messages that are collected at most, and their bytes, since each may keep a larger buffer in memory. One more message
 * may be larger than that.
 */
const MAX_COLLECTED = 256;
const MAX_COLLECTED_BYTES = 2 * 1024 * 1024;

/** Latest calls whose clients are known. More than this are hardly ever open at once. */
const KNOWN_CALLS = 4096;

/** Calls that wait for answers, and characters of what they are known by. A client may never come back. */
const ROUND_LIMITS = { count: 1000, length: 1024 * 1024 };

/**
 * Collects the messages of all taps in their order, and writes their lines. The message that is being handled is the
 * cause of those that are sent meanwhile, which is how most messages find the call that they belong to.
 */
export class Recorder implements Journal {
  readonly rounds = new RecentNames<number>(ROUND_LIMITS);
  /** The names of the clients of the latest calls. Each takes the place of one that is so many calls older. */
  readonly #clients: (string | undefined)[] = [];
  readonly #options: RecorderOptions;
  #entries: Entry[] = [];
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;
  #current: Entry | undefined;
  #lastSeq = 0;
  #lastCall = 0;
  #lastSession = 0;
  #lastConnection = 0;
  #latestAtMs = Number.NaN;
  #latestAt = '';

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Returns the taps of the server with this name. */
  tapsOf(server: string): MessageTaps {
    return {
      session: (client) => {
        this.#lastSession += 1;
        return new SessionTap(this, originOf(server, client, `s${this.#lastSession}`));
      },
      call: (client) => new CallTap(this, originOf(server, client)),
      connection: ({ transport, era }) => {
        this.#lastConnection += 1;
        const session = `c${this.#lastConnection}`;
        const facts = { side: 'server', server, client: undefined, session, carrier: transport } as const;
        const origin = new Origin({ ...facts, era: era ?? 'legacy' });
        return new ConnectionTap(this, origin, era === undefined ? 'unknown' : 'known');
      },
    };
  }

  get current(): Entry | undefined {
    return this.#current;
  }

  nextCall(): number {
    this.#lastCall += 1;
    return this.#lastCall;
  }

  add({ frame, origin, tap, direction, call }: Omit<Entry, 'atMs'>): Entry {
    // A message stays collected until the next one comes: by then its call is known, and its frame has passed the other
    // side, so that it is shown once for both.
    const isRepeated = this.#entries.at(-1)?.frame === frame;
    const isFull = this.#bytes >= MAX_COLLECTED_BYTES && !isRepeated;
    if (isFull || this.#entries.length >= MAX_COLLECTED) this.flush();
    const entry = { atMs: this.#options.wallClock(), frame, origin, tap, direction, call };
    this.#entries.push(entry);
    if (direction === 'in' && origin.facts.side === 'client' && this.#isRecent(call))
      this.#clients[call % KNOWN_CALLS] = origin.facts.client;
    if (!isRepeated) this.#bytes += frame.bytes.length;
    this.#cancelTimer ??= this.#options.clock.after(COLLECT_MS, () => this.flush());
    return entry;
  }

  handle(entry: Entry, handle: () => void): void {
    const outer = this.#current;
    this.#current = entry;
    try {
      handle();
    } finally {
      this.#current = outer;
    }
  }

  /** Writes the lines of all collected messages. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const entries = this.#entries;
    this.#entries = [];
    this.#bytes = 0;
    if (entries.length === 0) return;
    const firstSeq = this.#lastSeq + 1;
    this.#lastSeq += entries.length;
    const written = new Map<string, readonly string[]>();
    for (const sink of this.#options.sinks) {
      const { secrets, maxMessageBytes } = sink.format;
      const key = `${secrets} ${maxMessageBytes}`;
      const lines = written.get(key) ?? this.#linesOf(entries, firstSeq, sink.format);
      written.set(key, lines);
      if (lines.length > 0) sink.take(lines);
    }
  }

  #linesOf(entries: readonly Entry[], firstSeq: number, format: MessageFormat): readonly string[] {
    const lines: string[] = [];
    let seq = firstSeq - 1;
    let last: Frame | undefined;
    let shown: ShownMessage | undefined;
    for (const { frame, origin, direction, call, atMs } of entries) {
      seq += 1;
      // A message that passes unchanged is the same frame on both sides.
      if (frame !== last) shown = showMessage(frame, format);
      last = frame;
      if (shown === undefined) continue;
      const { text, hidden, isCut } = shown;
      const facts = {
        at: this.#textOf(atMs),
        seq,
        call: call === 0 ? undefined : call,
        client: origin.facts.side === 'server' ? this.#clientOf(call) : undefined,
        bytes: frame.bytes.length,
        hidden: hidden === 0 ? undefined : hidden,
        cut: isCut ? (true as const) : undefined,
      };
      lines.push(recordedLine(origin[direction], facts, text));
    }
    return lines;
  }

  #clientOf(call: number): string | undefined {
    return this.#isRecent(call) ? this.#clients[call % KNOWN_CALLS] : undefined;
  }

  /** False for no call, and for one whose place in `#clients` belongs to a later call. */
  #isRecent(call: number): boolean {
    return call !== 0 && call > this.#lastCall - KNOWN_CALLS;
  }

  #textOf(atMs: number): string {
    if (atMs !== this.#latestAtMs) {
      this.#latestAtMs = atMs;
      this.#latestAt = new Date(atMs).toISOString();
    }
    return this.#latestAt;
  }
}

function originOf(server: string, { transport, era, name }: TappedClient, session?: string): Origin {
  return new Origin({ side: 'client', server, client: name, session, carrier: transport, era });
}
