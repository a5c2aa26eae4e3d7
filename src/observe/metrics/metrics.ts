/**
 * Counts and times what clients do, for Prometheus. Where the semantic conventions of OpenTelemetry for MCP have a name it
 * is used, in the form that Prometheus gives it. [open-telemetry/semantic-conventions docs/gen-ai/mcp.md]
 */
import type * as Prom from 'prom-client';
import type { Clock } from '../../deps.ts';
import type { ErrorCode } from '../../errors.ts';
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
import type { Inspect } from '../inspection.ts';
import {
  BoundedWords,
  labelOfError,
  labelOfMethod,
  labelOfRareError,
  labelOfRevision,
  networkOf,
  OTHER,
  ServerWords,
} from './bounded-labels.ts';
import { InspectedGauges } from './inspected-gauges.ts';
import { DividedHistogram, writeMetrics } from './metrics-text.ts';

/** Seconds, as the conventions have them. */
const OPERATION_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
/** Those of the conventions end where most sessions only begin. */
const SESSION_BUCKETS = [...OPERATION_BUCKETS, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600];

/** A list of servers may change again and again. */
const MAX_SERVERS = 1000;
/** Label sets of the operations of all servers together. */
const MAX_OPERATIONS = 3000;

/** Labels; those that do not apply are left out, which Prometheus takes for empty. */
type Labels = Partial<Record<string, string>>;

export interface MetricsOptions {
  /** Asked when somebody looks. */
  readonly inspect: Inspect;
  readonly clock: Clock;
}

/** Loads the library for it, which few runs need. */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  return new Metrics(await import('prom-client'), options);
}

export class Metrics implements Observer {
  readonly seesCalls = true;
  readonly contentType: string;
  readonly #clock: Clock;
  readonly #registry: Prom.Registry;
  readonly #gauges: InspectedGauges;
  readonly #operations: DividedHistogram;
  readonly #sessions: DividedHistogram;
  readonly #clients: Prom.Counter;
  readonly #calls: Prom.Counter;
  readonly #translated: Prom.Counter;
  readonly #requestBytes: Prom.Counter;
  readonly #responseBytes: Prom.Counter;
  readonly #refusals: Prom.Counter;
  readonly #refusedRequests: Prom.Counter;
  readonly #deprecated: Prom.Counter;
  readonly #servers = new Map<string, ServerWords>();
  readonly #otherServers = new ServerWords(OTHER);
  /** Label sets of all servers. */
  readonly #known = new BoundedWords(MAX_OPERATIONS);
  /** The text that is being written. */
  #text: Promise<readonly Buffer[]> | undefined;

  constructor(prom: typeof Prom, { inspect, clock }: MetricsOptions) {
    const registry = new prom.Registry();
    const registers = [registry];
    const counter = (name: string, help: string, labelNames: readonly string[]): Prom.Counter =>
      new prom.Counter({ name, help, labelNames, registers });
    const histogram = (name: string, help: string, labelNames: readonly string[], buckets: number[]) =>
      new DividedHistogram(prom, { name, help, labelNames, buckets });
    this.#clock = clock;
    this.#registry = registry;
    this.contentType = registry.contentType;
    this.#operations = histogram(
      'mcp_server_operation_duration_seconds',
      'Requests of clients, from their arrival to the end of their answer.',
      [...OPERATION, 'error_type', 'client_era', 'server_era'],
      OPERATION_BUCKETS,
    );
    this.#sessions = histogram(
      'mcp_server_session_duration_seconds',
      'Sessions of clients that have ended.',
      [...CONNECTION, 'error_type'],
      SESSION_BUCKETS,
    );
    this.#clients = counter('mcp_portage_clients_total', 'Clients that connected.', [...CONNECTION, 'client_name']);
    this.#calls = counter('mcp_portage_client_calls_total', 'Requests of clients, by client.', [
      ...CONNECTION,
      'client_name',
    ]);
    this.#translated = counter(
      'mcp_portage_translated_calls_total',
      'Requests whose client and server speak different eras of the protocol.',
      ['server', 'client_era', 'server_era'],
    );
    this.#requestBytes = counter('mcp_portage_request_bytes_total', 'Bytes of the requests of clients.', TRAFFIC);
    this.#responseBytes = counter('mcp_portage_response_bytes_total', 'Bytes sent to clients for requests.', TRAFFIC);
    this.#refusals = counter('mcp_portage_session_refusals_total', 'Clients that got no session.', [
      ...TRAFFIC,
      'reason',
    ]);
    this.#refusedRequests = counter(
      'mcp_portage_refused_requests_total',
      'HTTP requests and connections that were refused, by the code of the error.',
      ['reason'],
    );
    this.#deprecated = counter(
      'mcp_portage_deprecated_uses_total',
      'Uses of what the specification has deprecated; by nobody: mcp-portage uses it towards the server.',
      ['server', 'feature', 'client_name'],
    );
    this.#gauges = new InspectedGauges(prom, registry, inspect);
    prom.collectDefaultMetrics({ register: registry });
  }

  /** The text for Prometheus, in pieces. Whoever asks while one is written gets that one. */
  text(): Promise<readonly Buffer[]> {
    this.#text ??= this.#write().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
  }

  async #write(): Promise<readonly Buffer[]> {
    await this.#gauges.pull();
    const registered = this.#registry.getMetricsAsArray().map(({ name }) => this.#registry.getSingleMetric(name));
    const undivided = registered.flatMap((metric) => (metric === undefined ? [] : [{ parts: [metric] as const }]));
    return writeMetrics([this.#operations, this.#sessions, ...undivided]);
  }

  opened(call: ObservedCall): OnCallEnded {
    return (ending) => this.#ended(call, ending);
  }

  connected(client: ObservedClient, _server: ObservedServer | undefined): OnClientLeft {
    const server = this.#wordsOf(client.server);
    const labels = connectionLabels(server.name, client);
    this.#clients.inc({ ...labels, ...clientName(server, client) });
    const sinceMs = this.#clock.now();
    return (reason) => {
      // This is how sessions end where nothing is wrong.
      const error: Labels = reason === 'ERR_SESSION_CLOSED' ? {} : { error_type: reason };
      this.#sessions.observe({ ...labels, ...error }, (this.#clock.now() - sinceMs) / 1000);
    };
  }

  refused(client: ClientOrigin, reason: ErrorCode): void {
    this.#refusals.inc({ ...trafficLabels(this.#wordsOf(client.server).name, client), reason });
  }

  /** By a code of ours, or because of too many connections: callers choose no part of it. */
  refusedRequest(reason: string): void {
    this.#refusedRequests.inc({ reason });
  }

  used(feature: DeprecatedFeature, by: Parameters<Observer['used']>[1]): void {
    const server = this.#wordsOf(by.server);
    this.#deprecated.inc({ server: server.name, feature, ...(by.client && clientName(server, by.client)) });
  }

  #ended(call: ObservedCall, ending: CallEnding): void {
    const { client } = call;
    const server = this.#wordsOf(client.server);
    const traffic = trafficLabels(server.name, client);
    this.#operations.observe(this.#operationLabels(server, call, ending), ending.durationMs / 1000);
    this.#calls.inc({ ...connectionLabels(server.name, client), ...clientName(server, client) });
    this.#requestBytes.inc(traffic, call.requestBytes);
    this.#responseBytes.inc(traffic, ending.bytes);
    if (ending.server !== undefined && ending.server.era !== client.era) {
      this.#translated.inc({ server: server.name, client_era: client.era, server_era: ending.server.era });
    }
  }

  #operationLabels(server: ServerWords, { client, method, tool }: ObservedCall, ending: CallEnding): Labels {
    const error = labelOfError(ending.outcome, server.rpcCodes);
    const eras: Labels = { client_era: client.era, ...(ending.server && { server_era: ending.server.era }) };
    const labels: Labels = {
      ...connectionLabels(server.name, client),
      mcp_method_name: labelOfMethod(method),
      ...(tool !== undefined && { gen_ai_tool_name: server.labelOfTool(tool, ending.outcome) }),
      ...(error !== undefined && { error_type: error }),
      ...eras,
    };
    const key = JSON.stringify(labels);
    if (this.#known.has(key)) return labels;
    if (server.operations.take(key) && this.#known.take(key)) return labels;
    // What is left can have few values: a peer that makes up words adds no more series.
    const rare = labelOfRareError(ending.outcome);
    return {
      ...trafficLabels(server.name, client),
      mcp_method_name: OTHER,
      ...(rare !== undefined && { error_type: rare }),
      ...eras,
    };
  }

  #wordsOf(name: string): ServerWords {
    const known = this.#servers.get(name);
    if (known !== undefined) return known;
    if (this.#servers.size >= MAX_SERVERS) return this.#otherServers;
    const words = new ServerWords(name);
    this.#servers.set(name, words);
    return words;
  }
}

const TRAFFIC = ['server', 'transport', 'network_transport'];
const CONNECTION = [...TRAFFIC, 'mcp_protocol_version'];
const OPERATION = [...CONNECTION, 'mcp_method_name', 'gen_ai_tool_name'];

function trafficLabels(server: string, { transport }: ClientOrigin): Labels {
  return { server, transport, network_transport: networkOf(transport) };
}

function connectionLabels(server: string, client: ObservedClient): Labels {
  const traffic = trafficLabels(server, client);
  return client.revision === undefined
    ? traffic
    : { ...traffic, mcp_protocol_version: labelOfRevision(client.revision) };
}

function clientName(server: ServerWords, { name }: ObservedClient): Labels {
  return name === undefined ? {} : { client_name: server.clients.labelOf(name) };
}
