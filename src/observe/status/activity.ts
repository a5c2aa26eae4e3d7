import { RecentNames } from '../../collections/bounded-collections.ts';
import { LinkedList, ListedValue } from '../../collections/short-lived-values.ts';
import { ERAS } from '../../mcp/vocabulary/revisions.ts';
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

/** Enough to see a client's last minutes; takes about 100 KB. */
export const MAX_RECENT_CALLS = 200;
/** Longest-running open calls that are listed, as these include the ones that hang. */
export const MAX_LISTED_OPEN_CALLS = 20;
/** Clients that are listed. The number of further ones is shown. */
export const MAX_LISTED_CLIENTS = 200;
/** Time for which a client without a connection is shown after its latest call. */
export const CALLER_SHOWN_MS = 5 * 60_000;
/** Limits of such clients, which can choose a new name for each call. */
const CALLER_LIMITS = { count: MAX_LISTED_CLIENTS, length: 200_000 };
/** Names, methods and tools are chosen by peers, and longer ones are cut. */
const MAX_TEXT_LENGTH = 128;
/** Limit of the remembered servers, past ones included. Beyond it, servers without recent calls are dropped. */
const MAX_SERVERS = 500;

/** A snapshot of clients and calls. */
export interface ActivityReport {
  readonly atMs: number;
  readonly clients: readonly ClientStatus[];
  readonly moreClients: number;
  readonly calls: CallsStatus;
  readonly ofServer: (name: string) => { readonly lastMinute: CallStatistics; readonly series: SeriesReport };
}

interface ServerActivity {
  readonly series: CallSeries;
  /** Protocols of the server, as seen in calls that have ended. */
  readonly speech: ServerSpeech;
}

/** A client: either connected, with a session or a pipe, or known only by its calls. */
interface SeenClient {
  readonly number: number;
  readonly described: ObservedClient;
  readonly sinceMs: number;
  lastSeenMs: number;
  server: ObservedServer | undefined;
}

/**
 * Calls are recorded for this time after each report, so a program that reads reports at shorter intervals misses no
 * call.
 */
const WATCHED_MS = 5 * 60_000;

/** Remembers connected clients and recent calls for the status page. The cost per call is constant. */
export class Activity implements Observer {
  readonly #wallClock: () => number;
  /**
   * True while calls are recorded. Connections always are; calls cost time, so they are recorded only while the status
   * is being watched and for WATCHED_MS after. The first call beyond that is the last one recorded.
   */
  seesCalls = false;
  #watchedUntilMs = 0;
  readonly #connected = new LinkedList<ListedValue<SeenClient>>();
  #connectedCount = 0;
  /** Modern clients over HTTP. */
  readonly #callers = new RecentNames<SeenClient>(CALLER_LIMITS);
  #clientCount = 0;
  /** Open calls; the bridge limits their number. */
  readonly #open = new LinkedList<ListedValue<OpenCall>>();
  #openCount = 0;
  #callCount = 0;
  /** Ring buffer of ended calls, in which the next one replaces the oldest. */
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
    // Members are copied one by one, since a spread takes ten times as long.
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
    const isError = outcome.kind !== 'answered' && outcome.kind !== 'cancelled';
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
    // Not recorded here: a client that got no session made a call that failed, which is among the recent ones.
  }

  used(): void {
    // Not recorded here: deprecated features are a matter of weeks and belong in the migration report.
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

  /** Returns the entry of a client that is known only by its calls; undefined for a client that connects. */
  #callerOf(client: ObservedClient, nowMs: number): SeenClient | undefined {
    if (ERAS[client.era].begins === 'initialize' || client.transport !== 'streamable-http') return undefined;
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

  /** Records a client without its principal, which the status does not show. */
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
      // When the client connected, the server's protocol may not have been known yet.
      serverSpeaks: toSpeech(server ?? this.#servers.get(described.server)?.speech.spokenTo(described)),
      sinceMs,
    };
  }

  /** Returns the entry of a server; undefined: the limit is reached, and all servers have recent calls. */
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

/**
 * Shortens a text. A shortened text is copied, since a slice would keep the original in memory, which may be as long as
 * a message.
 */
function shorten(text: string): string {
  const kept = text.length <= MAX_TEXT_LENGTH ? text : Buffer.from(`${text.slice(0, MAX_TEXT_LENGTH)}…`).toString();
  return showHidden(kept);
}
