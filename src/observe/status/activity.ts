import { RecentNames } from '../../collections/bounded-collections.ts';
import { LinkedList, ListedValue } from '../../collections/short-lived-values.ts';
import { showHidden } from '../../printable.ts';
import type {
  CallEnding,
  CallOutcome,
  ObservedCall,
  ObservedClient,
  ObservedServer,
  Observer,
  OnCallEnded,
  OnClientLeft,
} from '../../relay/observer.ts';
import { ServerSpeech } from '../../relay/observer.ts';
import { CallSeries, type CallStatistics, NO_CALLS, NO_SERIES, type SeriesReport } from './call-series.ts';
import { type CallsStatus, type ClientStatus, type EndedCall, type OpenCall, toSpeech } from './status-document.ts';

/** Enough to see what a client did in its last minutes; about 100 KB. */
export const MAX_RECENT_CALLS = 200;
/** The longest of the open calls tell most: those that hang. */
export const MAX_LISTED_OPEN_CALLS = 20;
/** Nobody reads a longer list. How many there are besides is told. */
export const MAX_LISTED_CLIENTS = 200;
/** Clients that neither connect nor leave are shown as long as somebody may think of them as being there. */
export const CALLER_SHOWN_MS = 5 * 60_000;
/** Such clients choose their names anew with each call, so what is kept of them is limited. */
const CALLER_LIMITS = { count: MAX_LISTED_CLIENTS, length: 200_000 };
/** Names, methods and tools are chosen by peers. Whoever reads a list of them needs no more. */
const MAX_TEXT_LENGTH = 128;
/** Servers that a configuration had at some time; the quiet ones make way for new ones. */
const MAX_SERVERS = 500;

/** What has been seen until a moment. */
export interface ActivityReport {
  readonly atMs: number;
  readonly clients: readonly ClientStatus[];
  readonly moreClients: number;
  readonly calls: CallsStatus;
  readonly ofServer: (name: string) => { readonly lastMinute: CallStatistics; readonly series: SeriesReport };
}

interface ServerActivity {
  readonly series: CallSeries;
  /** What is known of it from calls that have ended. */
  readonly speech: ServerSpeech;
}

/** A client that has a session or a pipe, or one that has neither and is known by its calls. */
interface SeenClient {
  readonly number: number;
  readonly described: ObservedClient;
  readonly sinceMs: number;
  lastSeenMs: number;
  server: ObservedServer | undefined;
}

/** Programs that look again within this time miss no call. */
const WATCHED_MS = 5 * 60_000;

/** Remembers for a while who is connected and who called what, for people who look. What it costs a call is constant. */
export class Activity implements Observer {
  readonly #wallClock: () => number;
  /**
   * Clients are known from when they connect; calls cost something, so they are seen while somebody looks, and a while
   * after. The call that finds that time over is the last.
   */
  seesCalls = false;
  #watchedUntilMs = 0;
  readonly #connected = new LinkedList<ListedValue<SeenClient>>();
  #connectedCount = 0;
  /** Modern clients over HTTP. */
  readonly #callers = new RecentNames<SeenClient>(CALLER_LIMITS);
  #clientCount = 0;
  /** The bridge limits how many calls are open. */
  readonly #open = new LinkedList<ListedValue<OpenCall>>();
  #openCount = 0;
  #callCount = 0;
  /** A ring: the next one that ends replaces the oldest. */
  readonly #recent: EndedCall[] = [];
  #endedCount = 0;
  readonly #overall = new CallSeries();
  readonly #servers = new Map<string, ServerActivity>();

  constructor(options: { readonly wallClock: () => number }) {
    this.#wallClock = options.wallClock;
  }

  opened(call: ObservedCall): OnCallEnded {
    const atMs = this.#wallClock();
    if (atMs >= this.#watchedUntilMs) this.seesCalls = false;
    const caller = this.#callerOf(call.client, atMs);
    this.#callCount += 1;
    const open: OpenCall = {
      number: this.#callCount,
      atMs,
      client: shortened(call.client.name),
      clientVersion: shortened(call.client.version),
      transport: call.client.transport,
      server: call.client.server,
      method: shorten(call.method),
      tool: shortened(call.tool),
      requestBytes: call.requestBytes,
    };
    const listed = new ListedValue(open);
    this.#open.add(listed);
    this.#openCount += 1;
    return (ending) => {
      if (!listed.unlink()) return;
      this.#openCount -= 1;
      this.#ended(open, ending, caller);
    };
  }

  #ended(open: OpenCall, { outcome, bytes, durationMs, server }: CallEnding, caller: SeenClient | undefined): void {
    const nowMs = this.#wallClock();
    // Every member by its name: copying them with a spread takes ten times as long.
    const ended: EndedCall = {
      number: open.number,
      atMs: open.atMs,
      client: open.client,
      clientVersion: open.clientVersion,
      transport: open.transport,
      server: open.server,
      method: open.method,
      tool: open.tool,
      requestBytes: open.requestBytes,
      outcome: outcome.kind,
      code: codeOf(outcome),
      durationMs: Math.round(durationMs * 10) / 10,
      bytes,
    };
    this.#recent[this.#endedCount % MAX_RECENT_CALLS] = ended;
    this.#endedCount += 1;
    const isError = outcome.kind === 'error' || outcome.kind === 'failed';
    this.#overall.record(nowMs, durationMs, isError);
    const activity = this.#ofServer(open.server, nowMs);
    activity?.series.record(nowMs, durationMs, isError);
    if (server !== undefined) activity?.speech.learn(server);
    if (caller !== undefined) {
      caller.lastSeenMs = nowMs;
      caller.server = server ?? caller.server;
    }
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft {
    const seen = new ListedValue(this.#see(client, server, this.#wallClock()));
    this.#connected.add(seen);
    this.#connectedCount += 1;
    return () => {
      if (seen.unlink()) this.#connectedCount -= 1;
    };
  }

  refused(): void {
    // Whoever got no session has made a call that failed, which is among the recent ones.
  }

  used(): void {
    // What is deprecated is a matter of weeks, not of now.
  }

  report(): ActivityReport {
    const nowMs = this.#wallClock();
    this.#watchedUntilMs = nowMs + WATCHED_MS;
    this.seesCalls = true;
    const connected = this.#connected.toArray().slice(-MAX_LISTED_CLIENTS);
    const callers = [...this.#callers].map(([, caller]) => caller).filter((caller) => isRecent(caller, nowMs));
    const shown = [
      ...connected.map(({ value }) => this.#describe(value, 'connected')),
      ...callers.map((client) => this.#describe(client, 'calling')),
    ];
    const clients = shown.sort((one, other) => other.number - one.number).slice(0, MAX_LISTED_CLIENTS);
    return {
      atMs: nowMs,
      clients,
      moreClients: this.#connectedCount + callers.length - clients.length,
      calls: {
        open: this.#openCount,
        longestOpen: this.#longestOpen(),
        lastMinute: this.#overall.lastMinute(nowMs),
        series: this.#overall.report(nowMs),
        recent: this.#latestFirst(),
      },
      ofServer: (name) => {
        const series = this.#servers.get(name)?.series;
        return {
          lastMinute: series?.lastMinute(nowMs) ?? NO_CALLS,
          series: series?.report(nowMs) ?? NO_SERIES,
        };
      },
    };
  }

  #longestOpen(): readonly OpenCall[] {
    const longest: OpenCall[] = [];
    for (const { value: call } of this.#open) {
      if (longest.length === MAX_LISTED_OPEN_CALLS) break;
      longest.push(call);
    }
    return longest;
  }

  #latestFirst(): readonly EndedCall[] {
    const next = this.#endedCount % MAX_RECENT_CALLS;
    return [...this.#recent.slice(next), ...this.#recent.slice(0, next)].reverse();
  }

  /** Undefined: the client connects and leaves, so its calls need not tell of it. */
  #callerOf(client: ObservedClient, nowMs: number): SeenClient | undefined {
    if (client.era !== 'modern' || client.transport !== 'streamable-http') return undefined;
    const key = [client.server, client.revision, client.name, client.version].join('\0');
    const known = this.#callers.get(key);
    if (known !== undefined && isRecent(known, nowMs)) {
      known.lastSeenMs = nowMs;
      return known;
    }
    const caller = this.#see(client, undefined, nowMs);
    this.#callers.set(key, caller);
    return caller;
  }

  /** Its principal is not kept: nobody who looks needs it. */
  #see(client: ObservedClient, server: ObservedServer | undefined, nowMs: number): SeenClient {
    this.#clientCount += 1;
    const described: ObservedClient = {
      transport: client.transport,
      principal: undefined,
      server: client.server,
      era: client.era,
      revision: shortened(client.revision) ?? undefined,
      name: shortened(client.name) ?? undefined,
      version: shortened(client.version) ?? undefined,
    };
    return { number: this.#clientCount, described, sinceMs: nowMs, lastSeenMs: nowMs, server };
  }

  #describe({ number, described, sinceMs, server }: SeenClient, presence: ClientStatus['presence']): ClientStatus {
    const { transport, era, revision = null, name = null, version = null } = described;
    return {
      number,
      presence,
      name,
      version,
      speaks: { transport, era, revision },
      server: described.server,
      // When it connected, nothing may have been known of the server yet.
      serverSpeaks: toSpeech(server ?? this.#servers.get(described.server)?.speech.spokenTo(described)),
      sinceMs,
    };
  }

  /** Undefined: there are too many that were called lately. */
  #ofServer(name: string, nowMs: number): ServerActivity | undefined {
    const known = this.#servers.get(name);
    if (known !== undefined) return known;
    if (this.#servers.size >= MAX_SERVERS) {
      for (const [other, { series }] of this.#servers) if (series.isQuiet(nowMs)) this.#servers.delete(other);
      if (this.#servers.size >= MAX_SERVERS) return undefined;
    }
    const activity: ServerActivity = { series: new CallSeries(), speech: new ServerSpeech() };
    this.#servers.set(name, activity);
    return activity;
  }
}

function isRecent({ lastSeenMs }: SeenClient, nowMs: number): boolean {
  return nowMs - lastSeenMs < CALLER_SHOWN_MS;
}

function codeOf(outcome: CallOutcome): EndedCall['code'] {
  return 'code' in outcome ? (outcome.code ?? null) : null;
}

function shortened(text: string | undefined): string | null {
  return text === undefined ? null : shorten(text);
}

/** A copy where something is cut off: a slice would hold the whole text in memory, which may be as long as a message. */
function shorten(text: string): string {
  const kept = text.length <= MAX_TEXT_LENGTH ? text : Buffer.from(`${text.slice(0, MAX_TEXT_LENGTH)}…`).toString();
  return showHidden(kept);
}
