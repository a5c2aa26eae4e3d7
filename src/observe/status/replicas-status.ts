/** Merges the status of all replicas into one document, which also names the replicas that did not answer. */

import type { CallStatistics, SeriesReport } from './call-series.ts';
import type { Status } from './create-status.ts';
import type { OtherReplicas, ReplicaAnswer } from './other-replicas.ts';
import { mergeRefused } from './refusals.ts';
import {
  type ClientStatus,
  type ReplicaStatus,
  type ServerStatus,
  STATUS_SHAPE,
  type StatusDocument,
} from './status-document.ts';

interface Part {
  readonly address: string;
  readonly status: StatusDocument;
}

const TARGET = '/status.json';
/** Within this time, further requests get the same document. */
const FRESH_MS = 1000;
const MAX_SHOWN = 200;
const MAX_LONGEST_OPEN = 20;

/**
 * Collects the status of all replicas. The other replicas are asked at most once per FRESH_MS, however many clients
 * watch.
 */
export class ReplicasStatus {
  readonly #own: Status;
  readonly #others: OtherReplicas;
  readonly #now: () => number;
  #latest: StatusDocument | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<StatusDocument> | undefined;

  constructor(own: Status, others: OtherReplicas, now: () => number) {
    this.#own = own;
    this.#others = others;
    this.#now = now;
  }

  /** Rejects with a BridgeError. */
  read(): Promise<StatusDocument> {
    if (this.#latest !== undefined && this.#now() - this.#askedMs < FRESH_MS) return Promise.resolve(this.#latest);
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Returns the latest known document and requests the next. `read` must have succeeded once before. */
  latest(): StatusDocument {
    this.read().catch(() => {
      // The other replicas cannot be asked now, so the next call shows only this replica.
      this.#latest = undefined;
    });
    return this.#latest ?? this.#alone();
  }

  async #ask(): Promise<StatusDocument> {
    const answers = await this.#others.ask(TARGET);
    this.#latest = mergeStatus({ address: this.#others.ownAddress, status: this.#own() }, answers);
    this.#askedMs = this.#now();
    return this.#latest;
  }

  #alone(): StatusDocument {
    const { ownAddress: address } = this.#others;
    const unknown: ReplicaStatus = {
      address: 'others',
      state: 'silent',
      problem: 'the store does not say which there are',
    };
    const own = mergeStatus({ address, status: this.#own() }, []);
    return { ...own, replicas: [...(own.replicas ?? []), unknown] };
  }
}

/** Merges the status documents. Members that are equal at all replicas are taken from this one. */
export function mergeStatus(own: Part, answers: readonly ReplicaAnswer[]): StatusDocument {
  const parts: Part[] = [own];
  const replicas: ReplicaStatus[] = [{ address: own.address, state: 'shown', problem: null }];
  for (const answer of answers) {
    const { address } = answer;
    const status = answer.kind === 'answered' ? parse(answer.body) : answer.problem;
    if (typeof status === 'string') replicas.push({ address, state: 'silent', problem: status });
    else {
      replicas.push({ address, state: 'shown', problem: null });
      parts.push({ address, status });
    }
  }
  const order = parts.map(({ address }) => address).sort();
  const all = parts.map(({ status }) => status);
  const sum = (of: (status: StatusDocument) => number): number => total(all.map(of));
  // Numbers are unique per replica. Combined with the replica's index they are unique in the whole document.
  const number = (own: number, { address }: Part): number => own * order.length + order.indexOf(address);
  const listed = <Item extends { readonly number: number }>(
    of: (status: StatusDocument) => readonly Item[],
  ): readonly Item[] =>
    parts.flatMap((part) => of(part.status).map((item) => ({ ...item, number: number(item.number, part) })));
  const clients = listed<ClientStatus>((status) => status.clients).toSorted((a, b) => b.sinceMs - a.sinceMs);
  const shown = clients.slice(0, MAX_SHOWN);
  return {
    ...own.status,
    replicas: replicas.toSorted((a, b) => (a.address < b.address ? -1 : 1)),
    bridge: {
      version: own.status.bridge.version,
      startedAtMs: Math.min(...all.map(({ bridge }) => bridge.startedAtMs)),
      openCalls: sum(({ bridge }) => bridge.openCalls),
      maxOpenCalls: sum(({ bridge }) => bridge.maxOpenCalls),
      processes: sum(({ bridge }) => bridge.processes),
      maxProcesses: sum(({ bridge }) => bridge.maxProcesses),
    },
    servers: own.status.servers.map((server) =>
      mergeServers(
        server,
        all.slice(1).flatMap(({ servers }) => servers.find(({ name }) => name === server.name) ?? []),
      ),
    ),
    clients: shown,
    moreClients: sum(({ moreClients }) => moreClients) + clients.length - shown.length,
    calls: {
      open: sum(({ calls }) => calls.open),
      longestOpen: listed((status) => status.calls.longestOpen)
        .toSorted((a, b) => a.atMs - b.atMs)
        .slice(0, MAX_LONGEST_OPEN),
      lastMinute: mergeStatistics(all.map(({ calls }) => calls.lastMinute)),
      series: mergeSeries(all.map(({ calls }) => calls.series)),
      recent: listed((status) => status.calls.recent)
        .toSorted((a, b) => b.atMs - a.atMs)
        .slice(0, MAX_SHOWN),
    },
    // A replica of an earlier version does not have this member.
    refused: mergeRefused(all.flatMap(({ refused }) => refused ?? [])),
    // The migration report covers all replicas, including those that are gone.
    usage: null,
  };
}

function parse(body: Buffer): StatusDocument | string {
  try {
    const status = JSON.parse(body.toString()) as StatusDocument; // a replica has made it
    return status.shape === STATUS_SHAPE ? status : 'it is of another version';
  } catch {
    return 'what it answers is no status';
  }
}

/**
 * States from the least to the most urgent. The merged state of a server is the most urgent of its replicas' states.
 */
const BY_URGENCY: readonly ServerStatus['state'][] = ['not-started', 'ready', 'starting', 'failing', 'stopped'];

function mergeServers(own: ServerStatus, others: readonly ServerStatus[]): ServerStatus {
  const all = [own, ...others];
  const sum = (of: (server: ServerStatus) => number): number => total(all.map(of));
  const worst = all.reduce((a, b) => (BY_URGENCY.indexOf(b.state) > BY_URGENCY.indexOf(a.state) ? b : a));
  return {
    ...own,
    state: worst.state,
    sinceMs: worst.sinceMs,
    problem: worst.problem,
    hubs: all.flatMap(({ hubs }) => hubs),
    speaks: all.find(({ speaks }) => speaks !== null)?.speaks ?? null,
    sessions: sum(({ sessions }) => sessions),
    openCalls: sum(({ openCalls }) => openCalls),
    processes: sum(({ processes }) => processes),
    restarts: sum(({ restarts }) => restarts),
    lastMinute: mergeStatistics(all.map(({ lastMinute }) => lastMinute)),
    series: mergeSeries(all.map(({ series }) => series)),
  };
}

/** Merges statistics. Quantiles cannot be added, so each is that of the slowest replica. */
function mergeStatistics(all: readonly CallStatistics[]): CallStatistics {
  return {
    calls: total(all.map(({ calls }) => calls)),
    errors: total(all.map(({ errors }) => errors)),
    p50Ms: longest(all.map(({ p50Ms }) => p50Ms)),
    p95Ms: longest(all.map(({ p95Ms }) => p95Ms)),
  };
}

function mergeSeries(all: readonly SeriesReport[]): SeriesReport {
  const [first] = all;
  const steps = new Map<number, { calls: number; errors: number; p50Ms: number; p95Ms: number }>();
  for (const series of all) {
    for (const [index, atMs] of series.atMs.entries()) {
      const step = steps.get(atMs) ?? { calls: 0, errors: 0, p50Ms: 0, p95Ms: 0 };
      steps.set(atMs, {
        calls: step.calls + (series.calls[index] ?? 0),
        errors: step.errors + (series.errors[index] ?? 0),
        p50Ms: Math.max(step.p50Ms, series.p50Ms[index] ?? 0),
        p95Ms: Math.max(step.p95Ms, series.p95Ms[index] ?? 0),
      });
    }
  }
  const sorted = [...steps].toSorted(([a], [b]) => a - b);
  return {
    stepMs: first?.stepMs ?? 0,
    steps: first?.steps ?? 0,
    atMs: sorted.map(([atMs]) => atMs),
    calls: sorted.map(([, { calls }]) => calls),
    errors: sorted.map(([, { errors }]) => errors),
    p50Ms: sorted.map(([, { p50Ms }]) => p50Ms),
    p95Ms: sorted.map(([, { p95Ms }]) => p95Ms),
  };
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function longest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.max(...known);
}
