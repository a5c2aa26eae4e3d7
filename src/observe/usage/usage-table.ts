/** Counts the calls of each client, as an observer of the bridge. */
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { showHidden } from '../../printable.ts';
import type {
  CallEnding,
  ClientOrigin,
  DeprecatedFeature,
  ObservedCall,
  ObservedClient,
  ObservedServer,
  Observer,
  OnCallEnded,
  OnClientLeft,
} from '../../relay/observer.ts';
import { latencyBucketOf } from '../latency.ts';
import type { LiveRow } from './live-row.ts';
import {
  dayOf,
  MAX_NAME_LENGTH,
  MAX_SERVER_LENGTH,
  MAX_VERSION_LENGTH,
  type ServedEndpoint,
  type Usage,
  type UsageClient,
  type UsageServer,
} from './usage.ts';
import { UsageRows } from './usage-rows.ts';

export interface UsageTableOptions {
  /**
   * Returns milliseconds since the epoch. Wall-clock times are used since rows outlive the process and are merged with
   * those of other processes.
   */
  readonly wallClock: () => number;
  /** Endpoints that are served. The report calls no other endpoint unused. */
  readonly served: readonly ServedEndpoint[];
}

/** Number of rows that can be found without composing a key. */
const RECENT_ROWS = 16;
/** A subscription lasts as long as its client listens, so its duration is left out of the latencies. */
const LISTEN = 'subscriptions/listen';

export class UsageTable implements Observer {
  readonly seesCalls = true;
  readonly #wallClock: () => number;
  readonly #rows = new UsageRows();
  #served: readonly ServedEndpoint[];
  /** Rows of the latest calls, indexed by a hash of their names. */
  readonly #recent: (LiveRow | undefined)[] = new Array<undefined>(RECENT_ROWS).fill(undefined);
  #day: number;
  #changes = 0;

  constructor({ wallClock, served }: UsageTableOptions) {
    this.#wallClock = wallClock;
    this.#served = served;
    this.#day = dayOf(wallClock());
    this.watch();
  }

  /** Increases with everything that is counted. */
  get changes(): number {
    return this.#changes;
  }

  /** Replaces the served endpoints. */
  serve(served: readonly ServedEndpoint[]): void {
    this.watch();
    this.#served = served;
    this.watch();
  }

  /**
   * Records that the endpoints are still served, and that clients with a session still use them. To be called every few
   * minutes.
   */
  watch(): void {
    const nowMs = this.#now();
    for (const endpoint of this.#served)
      this.#rows.watched({ ...endpoint, server: cut(endpoint.server, MAX_SERVER_LENGTH) }, nowMs);
    for (const row of this.#rows) {
      if (row.openSessions === 0) continue;
      row.seen(nowMs);
      // Creates the day's entry, with the sessions that it began with.
      row.at(nowMs);
    }
  }

  /** Adds the counts of another process. */
  adopt(usage: Usage): void {
    this.#rows.add(usage, this.#now());
    this.#recent.fill(undefined);
  }

  /** Starts counting from zero, after another process has taken over the counts. */
  clear(): void {
    this.#rows.clear(this.#now());
    this.#recent.fill(undefined);
    this.watch();
  }

  usage(): Usage {
    return this.#rows.toUsage();
  }

  toJson(): string {
    return this.#rows.toJson();
  }

  opened(call: ObservedCall): OnCallEnded {
    return (ending) => this.#ended(call, ending);
  }

  #ended({ client, method, requestBytes }: ObservedCall, { outcome, bytes, durationMs, server }: CallEnding): void {
    const isAnswered = outcome.kind === 'answered' || outcome.kind === 'tool-error';
    // A successful handshake is counted as a session.
    if (method === INITIALIZE && isAnswered) return;
    const nowMs = this.#now();
    const row = this.#rowOf(client, server, nowMs);
    row.seen(nowMs);
    const day = row.at(nowMs);
    day.calls += 1;
    day.requestBytes += requestBytes;
    day.answerBytes += bytes;
    if (outcome.kind === 'error' || outcome.kind === 'failed') day.errors += 1;
    if ((!isAnswered && outcome.kind !== 'error') || method === LISTEN) return;
    const bucket = latencyBucketOf(durationMs);
    day.latency[bucket] = (day.latency[bucket] ?? 0) + 1;
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft {
    const nowMs = this.#now();
    const row = this.#rowOf(client, server, nowMs);
    row.seen(nowMs);
    row.at(nowMs).sessions += 1;
    row.openSessions += 1;
    return () => this.#left(row);
  }

  #left(row: LiveRow): void {
    let current = row;
    while (current.foldedInto !== undefined) current = current.foldedInto;
    current.openSessions -= 1;
    current.seen(this.#now());
  }

  refused({ transport, server }: ClientOrigin): void {
    const nowMs = this.#now();
    const client: UsageClient = { kind: 'client', name: undefined, version: undefined, transport, revision: undefined };
    const row = this.#rows.find(client, serverOf(server, undefined), nowMs);
    row.seen(nowMs);
    row.at(nowMs).refused += 1;
  }

  used(feature: DeprecatedFeature, { server, client }: Parameters<Observer['used']>[1]): void {
    const nowMs = this.#now();
    const row =
      client === undefined
        ? this.#rows.find(BRIDGE, serverOf(server, undefined), nowMs)
        : this.#rowOf(client, undefined, nowMs);
    row.used(feature, 1, nowMs);
  }

  /** Returns the current time for something to be counted, and starts a new day if needed. */
  #now(): number {
    this.#changes += 1;
    const nowMs = Math.floor(this.#wallClock());
    const day = dayOf(nowMs);
    if (day !== this.#day) {
      this.#day = day;
      this.#rows.forgetOld(nowMs);
      this.#recent.fill(undefined);
    }
    return nowMs;
  }

  #rowOf(client: ObservedClient, server: ObservedServer | undefined, nowMs: number): LiveRow {
    const place = (client.server.length * 3 + (client.name?.length ?? 0) * 5 + client.transport.length) % RECENT_ROWS;
    const recent = this.#recent[place];
    if (recent !== undefined && recent.foldedInto === undefined && isRowOf(recent, client, server)) return recent;
    const row = this.#rows.find(clientOf(client), serverOf(client.server, server), nowMs);
    this.#recent[place] = row;
    return row;
  }
}

const BRIDGE: UsageClient = {
  kind: 'bridge',
  name: undefined,
  version: undefined,
  transport: undefined,
  revision: undefined,
};

/**
 * Returns true if the row is that of the client. Always false for a name that was cut, whose row is then found by its
 * key.
 */
function isRowOf(row: LiveRow, client: ObservedClient, server: ObservedServer | undefined): boolean {
  const known = row.client;
  return (
    known.kind === 'client' &&
    known.name === client.name &&
    known.version === client.version &&
    known.revision === client.revision &&
    known.transport === client.transport &&
    row.server.name === client.server &&
    row.server.revision === server?.revision &&
    row.server.transport === server?.transport
  );
}

function clientOf({ name, version, transport, revision }: ObservedClient): UsageClient {
  return {
    kind: 'client',
    name: name && cut(name, MAX_NAME_LENGTH),
    version: version && cut(version, MAX_VERSION_LENGTH),
    transport,
    revision: revision && cut(revision, MAX_VERSION_LENGTH),
  };
}

function serverOf(name: string, server: ObservedServer | undefined): UsageServer {
  const revision = server?.revision;
  return {
    name: cut(name, MAX_SERVER_LENGTH),
    transport: server?.transport,
    revision: revision && cut(revision, MAX_VERSION_LENGTH),
  };
}

/** Limits a text and shows its hidden characters, so that different names look different in a report. */
function cut(text: string, maxLength: number): string {
  return showHidden(text.slice(0, maxLength)).slice(0, maxLength);
}
