import type { IncomingMessage, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { identifyCaller, recordPassedCaller } from '../../src/http/auth/callers.ts';
import { refusalOf } from '../../src/http/server/respond.ts';
import type { ForwardedRequest, ForwardOutcome } from '../../src/replicas/forwarding/forwarding.ts';
import { NOT_HERE_HEADER } from '../../src/replicas/forwarding/passed-request.ts';
import { Router } from '../../src/replicas/forwarding/router.ts';
import { SessionFinder, type TakenOver } from '../../src/replicas/forwarding/session-finder.ts';
import { Cluster } from '../../src/replicas/ownership/cluster.ts';
import type { Owner } from '../../src/replicas/ownership/owner-tags.ts';
import { ClusterKey } from '../../src/replicas/store/cluster-key.ts';
import type { Store } from '../../src/replicas/store/store.ts';
import { SessionRecords } from '../../src/replicas/stored/session-records.ts';
import { type Condition, SimulatedMachine, type Simulation, type Trip, TTL_MS } from './simulated-cluster.ts';

/** What a session leads to: a remote server, at which any replica can go on, or a process of its replica. */
export type SessionKind = 'remote' | 'process';

/** How a request ended: at the replica of this name, nowhere, or refused for this reason. */
export type Outcome = string;
export const UNKNOWN: Outcome = '404';

const log = pino({ level: 'silent' });
const KEY = new ClusterKey(['k'.repeat(40)]);
const CALLER = 'alice';
const SESSION_TTL_MS = 1000 * TTL_MS;

export interface BridgeEvents {
  /** Its name was declared dead, as far as the store says. */
  readonly died: (bridge: SimulatedBridge, id: string) => void;
}

/** A replica in simulated time, with sessions of both kinds: who has which, and where requests for them are served. */
export class SimulatedBridge {
  readonly name: string;
  readonly machine: SimulatedMachine;
  readonly #store: Store;
  readonly #others: ReadonlyMap<string, SimulatedBridge>;
  readonly #events: BridgeEvents;
  readonly #sessions = { remote: new Set<string>(), process: new Set<string>() };
  #parts:
    | {
        readonly cluster: Cluster;
        readonly records: SessionRecords;
        readonly router: Router;
        readonly finders: Readonly<Record<SessionKind, SessionFinder>>;
      }
    | undefined;
  #ids = 0;

  /** @param others all replicas by their addresses */
  constructor(
    name: string,
    options: {
      readonly simulation: Simulation;
      readonly store: Store;
      readonly nextTrip: () => Trip;
      readonly others: ReadonlyMap<string, SimulatedBridge>;
      readonly events: BridgeEvents;
    },
  ) {
    this.name = name;
    this.machine = new SimulatedMachine(options.simulation);
    this.#store = this.machine.reach(options.store, options.nextTrip);
    this.#others = options.others;
    this.#events = options.events;
  }

  get address(): string {
    return `http://${this.name}`;
  }

  get cluster(): Cluster | undefined {
    return this.#parts?.cluster;
  }

  /** The sessions that are here. */
  has(kind: SessionKind, id: string): boolean {
    return this.#sessions[kind].has(id);
  }

  set condition(condition: Condition) {
    this.machine.condition = condition;
  }

  async join(): Promise<void> {
    const { clock, wallClock } = this.machine;
    const deps = { log, clock, wallClock, randomId: () => `${this.name}-${this.#ids++}` };
    const cluster = await Cluster.join({
      store: this.#store,
      key: KEY,
      address: this.address,
      leaseMs: TTL_MS,
      wallClock,
      deps,
    });
    const records = new SessionRecords({ cluster, server: 'server', ttlMs: SESSION_TTL_MS, clock, log });
    const forwarder = { forward: this.#forward.bind(this) };
    const router = new Router({ cluster, forwarder, deps });
    const createFinder = (kind: SessionKind): SessionFinder =>
      new SessionFinder({
        cluster,
        stage: () => 'staying',
        has: (id) => this.has(kind, id),
        takeOver: kind === 'remote' ? (id) => this.#takeOver(id) : undefined,
      });
    const finders = { remote: createFinder('remote'), process: createFinder('process') };
    cluster.onLost(() => {
      records.lost();
      this.#sessions.remote.clear();
    });
    cluster.onDead((id) => {
      this.#events.died(this, id);
      for (const session of this.#sessions.process) {
        if (cluster.tags.ownerOf(session)?.id === id) this.#sessions.process.delete(session);
      }
    });
    this.#parts = { cluster, records, router, finders };
  }

  /** Undefined: it is no replica yet, or does not run. */
  open(kind: SessionKind): string | undefined {
    if (this.#parts === undefined || this.machine.condition !== 'running') return undefined;
    const { cluster, records } = this.#parts;
    if (!cluster.isHeld) return undefined;
    const id = cluster.createId();
    if (kind === 'remote') {
      const state = records.begin(id, CALLER);
      state.offer = { protocolVersion: '2025-11-25', capabilities: {} };
      state.isInitialized = true;
    }
    this.#sessions[kind].add(id);
    return id;
  }

  /** Sends it a request of a client, or of another replica. It is answered when it runs. */
  ask(kind: SessionKind, id: string, hop?: Owner): Promise<Outcome> {
    return new Promise((resolve) => this.machine.run(() => this.#ask(kind, id, { hop, resolve })));
  }

  #ask(
    kind: SessionKind,
    id: string,
    { hop, resolve }: { readonly hop: Owner | undefined; readonly resolve: (outcome: Outcome) => void },
  ): void {
    if (this.#parts === undefined) return resolve('it is no replica');
    const { cluster, router, finders } = this.#parts;
    const isMeant = hop === undefined || cluster.self.id === hop.id || cluster.wasCalled(hop.id);
    if (!isMeant) return resolve(NOT_HERE_HEADER);
    const request = { headers: {}, kind, id } as unknown as IncomingMessage;
    identifyCaller(request, CALLER);
    if (hop !== undefined) recordPassedCaller(request, CALLER);
    const response = createResponse(resolve);
    const serve = (): void => resolve(this.has(kind, id) ? this.name : UNKNOWN);
    router.route(() => finders[kind].search(id, request), { request, response, serve });
  }

  async #takeOver(id: string): Promise<TakenOver> {
    if (this.#parts === undefined) return { kind: 'unknown' };
    const taken = await this.#parts.records.take(id, CALLER);
    if (taken.kind !== 'taken') return taken;
    this.#sessions.remote.add(id);
    return { kind: 'here' };
  }

  /** A replica that is stopped says nothing, until it is known to be dead. */
  #forward(owner: Owner, { request, response }: ForwardedRequest, done: (outcome: ForwardOutcome) => void): void {
    const { kind, id } = request as unknown as { readonly kind: SessionKind; readonly id: string };
    const peers = this.cluster?.peers;
    let isOver = false;
    const end = (outcome: ForwardOutcome): void => {
      if (isOver) return;
      isOver = true;
      stop();
      this.machine.run(() => done(outcome));
    };
    const stop = this.machine.clock.every(TTL_MS / 6, () => {
      peers?.watch(owner.id);
      if (peers?.isDead(owner.id)) end({ kind: 'unreachable' });
    });
    peers?.watch(owner.id);
    const other = this.#others.get(owner.address);
    if (other === undefined) return end({ kind: 'unreachable' });
    void other.ask(kind, id, owner).then((outcome) => {
      if (outcome === NOT_HERE_HEADER) return end({ kind: 'not-here', body: undefined });
      if (!isOver) response.end(outcome);
      end({ kind: 'responded' });
    });
  }
}

/** Tells how the request ended. */
function createResponse(resolve: (outcome: Outcome) => void): ServerResponse {
  const response = {
    destroyed: false,
    headersSent: false,
    writeHead: (status: number) => {
      response.status = status;
      return response;
    },
    status: 200,
    end: (outcome?: unknown) => {
      if (response.status === 421) return resolve(NOT_HERE_HEADER);
      if (response.status === 404) return resolve(UNKNOWN);
      const code = refusalOf(response as unknown as ServerResponse);
      resolve(code ?? String(outcome));
    },
  };
  return response as unknown as ServerResponse;
}
