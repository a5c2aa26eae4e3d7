/** The rows of the usage, with fixed limits for any number of clients and any length of time. */
import type { Transport } from '../../relay/observer.ts';
import { LiveRow } from './live-row.ts';
import {
  dayOf,
  MAX_DAY_COUNTS,
  MAX_DAYS,
  MAX_OTHERS_ROWS,
  MAX_ROWS,
  MAX_SERVED,
  type ServedEndpoint,
  type ServedRecord,
  type Usage,
  type UsageClient,
  type UsageServer,
} from './usage.ts';

/** Server name of the row that counts all servers beyond the limit. */
export const OTHER_SERVERS = '(others)';

interface LiveServed extends Omit<ServedEndpoint, 'sunset'> {
  sunset: string | undefined;
  sinceMs: number;
  untilMs: number;
  readonly days: number[];
}

/**
 * Keeps rows and days within their limits. Beyond them the least recently seen rows are counted together, and the
 * oldest days are dropped; the time of the latest use stays known.
 */
export class UsageRows {
  readonly #rows = new Map<string, LiveRow>();
  /** Number of rows that count several clients together. */
  #othersRows = 0;
  readonly #served = new Map<string, LiveServed>();

  /** Returns the row of this client, and creates it if needed. */
  find(client: UsageClient, server: UsageServer, nowMs: number): LiveRow {
    const key = keyOf(client, server);
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const row = new LiveRow(client, server, nowMs);
    this.#rows.set(key, row);
    if (client.kind === 'others') this.#othersRows += 1;
    this.#dropFor(row);
    return row;
  }

  [Symbol.iterator](): Iterator<LiveRow> {
    return this.#rows.values();
  }

  /** Records that an endpoint was served at this time. */
  watched({ server, transport, path, sunset }: ServedEndpoint, nowMs: number): void {
    this.#addServed({ server, transport, path, sunset, sinceMs: nowMs, untilMs: nowMs, days: [dayOf(nowMs)] });
  }

  add(usage: Usage, nowMs: number): void {
    for (const record of usage.served) this.#addServed(record);
    for (const row of usage.rows) this.find(row.client, row.server, row.firstSeenMs).add(row);
    this.forgetOld(nowMs);
  }

  /** Drops what is beyond the limits. To be called when days may have been added. */
  forgetOld(nowMs: number): void {
    const oldest = dayOf(nowMs) - MAX_DAYS;
    for (const [key, row] of this.#rows) {
      row.forgetDaysBefore(oldest);
      if (dayOf(row.lastSeenMs) < oldest && row.openSessions === 0) this.#delete(key, row);
    }
    for (const [key, record] of this.#served) if (dayOf(record.untilMs) < oldest) this.#served.delete(key);
    this.#boundDays();
  }

  #boundDays(): void {
    const rows = [...this.#rows.values()];
    let surplus = rows.reduce((sum, { dayCount }) => sum + dayCount, 0) - MAX_DAY_COUNTS;
    while (surplus > 0) {
      const oldest = Math.min(...rows.map(({ oldestDay }) => oldestDay));
      for (const row of rows) {
        if (row.oldestDay !== oldest) continue;
        row.forgetOldestDay();
        surplus -= 1;
      }
    }
  }

  /** Starts counting from zero. Rows with open sessions stay. */
  clear(nowMs: number): void {
    for (const [key, row] of this.#rows) {
      row.clear(nowMs);
      if (row.openSessions === 0) this.#delete(key, row);
    }
    this.#served.clear();
  }

  toUsage(): Usage {
    return { format: 1, served: [...this.#served.values()], rows: Array.from(this, (row) => row.toUsage()) };
  }

  /** Returns the result of `toUsage` as JSON. */
  toJson(): string {
    const served = JSON.stringify([...this.#served.values()]);
    const rows = Array.from(this, (row) => row.toJson());
    return `{"format":1,"served":${served},"rows":[${rows.join(',\n')}]}`;
  }

  #dropFor(newest: LiveRow): void {
    if (this.#rows.size - this.#othersRows > MAX_ROWS) this.#fold((row) => row.client.kind !== 'others', newest);
    if (this.#othersRows > MAX_OTHERS_ROWS) this.#fold((row) => isOfOneServer(row), newest);
  }

  /** Adds the least recently seen of these rows to the row of others. */
  #fold(isCandidate: (row: LiveRow) => boolean, newest: LiveRow): void {
    let oldest: LiveRow | undefined;
    for (const row of this.#rows.values()) {
      if (row === newest || !isCandidate(row)) continue;
      if (oldest === undefined || row.lastSeenMs < oldest.lastSeenMs) oldest = row;
    }
    if (oldest === undefined) return;
    this.#delete(keyOf(oldest.client, oldest.server), oldest);
    const { transport } = oldest.client;
    const name = oldest.client.kind === 'others' ? OTHER_SERVERS : oldest.server.name;
    const others = this.find(
      othersOf(transport),
      { name, transport: undefined, revision: undefined },
      oldest.firstSeenMs,
    );
    others.add(oldest.toUsage());
    others.openSessions += oldest.openSessions;
    oldest.foldedInto = others;
  }

  #delete(key: string, row: LiveRow): void {
    this.#rows.delete(key);
    if (row.client.kind === 'others') this.#othersRows -= 1;
  }

  #addServed(record: ServedRecord): void {
    const { server, transport, path, sunset, sinceMs, untilMs, days } = record;
    const key = JSON.stringify([server, transport, path]);
    const known = this.#served.get(key);
    if (known === undefined) {
      this.#served.set(key, { server, transport, path, sunset, sinceMs, untilMs, days: days.slice(-MAX_DAYS) });
      if (this.#served.size > MAX_SERVED) this.#forgetServed();
      return;
    }
    // The latest record has the current announcement.
    if (untilMs >= known.untilMs) known.sunset = sunset;
    known.sinceMs = Math.min(known.sinceMs, sinceMs);
    known.untilMs = Math.max(known.untilMs, untilMs);
    addDays(known.days, days);
  }

  #forgetServed(): void {
    let oldest: readonly [key: string, untilMs: number] | undefined;
    for (const [key, { untilMs }] of this.#served)
      if (oldest === undefined || untilMs < oldest[1]) oldest = [key, untilMs];
    if (oldest !== undefined) this.#served.delete(oldest[0]);
  }
}

function addDays(known: number[], days: readonly number[]): void {
  const [only] = days;
  if (days.length === 1 && known.at(-1) === only) return;
  const all = [...new Set([...known, ...days])].sort((one, other) => one - other).slice(-MAX_DAYS);
  known.splice(0, known.length, ...all);
}

function isOfOneServer({ client, server }: LiveRow): boolean {
  return client.kind === 'others' && server.name !== OTHER_SERVERS;
}

function othersOf(transport: Transport | undefined): UsageClient {
  return { kind: 'others', name: undefined, version: undefined, transport, revision: undefined };
}

function keyOf(client: UsageClient, server: UsageServer): string {
  return JSON.stringify([
    client.kind,
    client.name,
    client.version,
    client.transport,
    client.revision,
    server.name,
    server.transport,
    server.revision,
  ]);
}
