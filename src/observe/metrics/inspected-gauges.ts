import { setImmediate as turn } from 'node:timers/promises';
import type * as Prom from 'prom-client';
import type { Inspect, InspectedServer, ServerState } from '../inspection.ts';
import { labelOfRevision } from './bounded-labels.ts';

/** Servers whose state is taken in one turn of the event loop: there may be a thousand. */
const SERVERS_PER_TURN = 50;
const STATES: readonly ServerState[] = ['idle', 'ready', 'unproven', 'refused'];
/** In these, a call would be served as far as is known. */
const UP: ReadonlySet<ServerState> = new Set(['idle', 'ready']);

/** What is looked at when somebody asks, and not counted meanwhile: the state of the bridge and of each server. */
export class InspectedGauges {
  readonly #inspect: Inspect;
  readonly #info: Prom.Gauge;
  readonly #started: Prom.Gauge;
  readonly #maxOpenCalls: Prom.Gauge;
  readonly #maxProcesses: Prom.Gauge;
  readonly #up: Prom.Gauge;
  readonly #state: Prom.Gauge;
  readonly #speaks: Prom.Gauge;
  readonly #sessions: Prom.Gauge;
  readonly #openCalls: Prom.Gauge;
  readonly #processes: Prom.Gauge;
  readonly #connections: Prom.Gauge;
  readonly #unsentBytes: Prom.Gauge;
  readonly #queueItems: Prom.Gauge;
  readonly #queueBytes: Prom.Gauge;
  readonly #restarts: Prom.Counter;

  constructor(prom: typeof Prom, registry: Prom.Registry, inspect: Inspect) {
    const registers = [registry];
    const gauge = (name: string, help: string, labelNames: readonly string[] = []): Prom.Gauge =>
      new prom.Gauge({ name: `mcp_portage_${name}`, help, labelNames, registers });
    this.#inspect = inspect;
    this.#info = gauge('info', 'Always 1; the label has the version of mcp-portage.', ['version']);
    this.#started = gauge('start_time_seconds', 'When the bridge started, in seconds since the epoch.');
    this.#maxOpenCalls = gauge('open_calls_limit', 'Calls of all servers that may be open (--max-in-flight).');
    this.#maxProcesses = gauge('processes_limit', 'Processes of all servers that may run (--max-children).');
    this.#up = gauge('server_up', '1: clients can be served as far as is known.', ['server', 'kind']);
    this.#state = gauge('server_state', '1 for the state that the server is in.', ['server', 'state']);
    this.#speaks = gauge('server_speaks', 'Always 1; the labels say what has been found out that the server speaks.', [
      'server',
      'transport',
      'server_era',
      'mcp_protocol_version',
    ]);
    this.#sessions = gauge('sessions', 'Sessions of clients that are open.', ['server']);
    this.#openCalls = gauge('open_calls', 'Calls that wait for an answer.', ['server']);
    this.#processes = gauge('processes', 'Processes that run, those that are ending included.', ['server']);
    this.#connections = gauge('connections', 'Connections of clients.');
    this.#unsentBytes = gauge('unsent_bytes', 'Bytes of answers and streams that clients have not taken yet.');
    this.#queueItems = gauge('queue_items', 'What waits or is kept, by queue.', ['server', 'queue']);
    this.#queueBytes = gauge('queue_bytes', 'Bytes of what waits or is kept, by queue.', ['server', 'queue']);
    this.#restarts = new prom.Counter({
      name: 'mcp_portage_restarts_total',
      help: 'Server processes that exited by themselves, or were ended because they hung.',
      labelNames: ['server'],
      registers,
    });
  }

  /** Takes the state of this moment. Servers that are served no longer are gone then. */
  async pull(): Promise<void> {
    const { version, startedAtMs, maxOpenCalls, maxProcesses, servers, ...bridge } = this.#inspect();
    this.#connections.set(bridge.connections);
    this.#unsentBytes.set(bridge.unsentBytes);
    this.#info.set({ version }, 1);
    this.#started.set(startedAtMs / 1000);
    this.#maxOpenCalls.set(maxOpenCalls);
    this.#maxProcesses.set(maxProcesses);
    for (const metric of this.#ofServers) metric.reset();
    this.#restarts.reset();
    for (const [index, server] of servers.entries()) {
      this.#setServer(server);
      if (index % SERVERS_PER_TURN === SERVERS_PER_TURN - 1) await turn();
    }
  }

  get #ofServers(): readonly Prom.Gauge[] {
    const counts = [this.#sessions, this.#openCalls, this.#processes, this.#queueItems, this.#queueBytes];
    return [this.#up, this.#state, this.#speaks, ...counts];
  }

  #setServer({ name, kind, state, verdicts, queues, sessions, openCalls, processes, restarts }: InspectedServer): void {
    const server = { server: name };
    this.#up.set({ ...server, kind }, UP.has(state) ? 1 : 0);
    for (const each of STATES) this.#state.set({ ...server, state: each }, each === state ? 1 : 0);
    for (const { transport, era, revision: found } of verdicts) {
      const revision = found === undefined ? {} : { mcp_protocol_version: labelOfRevision(found) };
      this.#speaks.set({ ...server, transport, server_era: era, ...revision }, 1);
    }
    for (const { queue, items, bytes } of queues) {
      if (items !== undefined) this.#queueItems.set({ ...server, queue }, items);
      if (bytes !== undefined) this.#queueBytes.set({ ...server, queue }, bytes);
    }
    this.#sessions.set(server, sessions);
    this.#openCalls.set(server, openCalls);
    this.#processes.set(server, processes);
    this.#restarts.inc(server, restarts);
  }
}
