/**
 * Counts and times the calls and sessions of clients for Prometheus. Names follow the OpenTelemetry semantic
 * conventions for MCP where they have one, in the form that Prometheus gives it. [open-telemetry/semantic-conventions
 * docs/gen-ai/mcp.md]
 */
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
import { Counter, type Family, Histogram, type LabelText, writeLabels } from './families.ts';
import { inspectedGauges } from './inspected-gauges.ts';
import { writeMetrics } from './metrics-text.ts';
import { createProcessMetrics } from './process-metrics.ts';

/** Buckets in seconds, from the conventions. */
const OPERATION_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
/** The buckets of the conventions end too early for most sessions, so longer ones are added. */
const SESSION_BUCKETS = [...OPERATION_BUCKETS, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600];

/** Limit of the servers with their own labels, since the configured list may change repeatedly. */
const MAX_SERVERS = 1000;
/** Label sets of the operations of all servers together. */
const MAX_OPERATIONS = 3000;

/** Labels that do not apply to a series are left out. */
type Labels = Partial<Record<string, string>>;

export interface MetricsOptions {
  /** Called for each scrape. */
  readonly inspect: Inspect;
  readonly clock: Clock;
}

/** Loads the library for the metrics of the process, which few runs need. */
export async function createMetrics({ inspect, clock }: MetricsOptions): Promise<Metrics> {
  const prom = await import('prom-client');
  const { contentType } = new prom.Registry();
  return new Metrics({ inspect, clock, contentType, ofProcess: createProcessMetrics(prom) });
}

interface MetricsParts extends MetricsOptions {
  readonly contentType: string;
  readonly ofProcess: readonly Family[];
}

export class Metrics implements Observer {
  readonly seesCalls = true;
  readonly contentType: string;
  readonly #clock: Clock;
  readonly #inspect: Inspect;
  readonly #ofProcess: readonly Family[];
  readonly #operations = new Histogram(
    {
      name: 'mcp_server_operation_duration_seconds',
      help: 'Requests of clients, from their arrival to the end of their answer.',
    },
    OPERATION_BUCKETS,
  );
  readonly #sessions = new Histogram(
    { name: 'mcp_server_session_duration_seconds', help: 'Sessions of clients that have ended.' },
    SESSION_BUCKETS,
  );
  readonly #clients = new Counter({ name: 'mcp_portage_clients_total', help: 'Clients that connected.' });
  readonly #calls = new Counter({
    name: 'mcp_portage_client_calls_total',
    help: 'Requests of clients, by client.',
  });
  readonly #translated = new Counter({
    name: 'mcp_portage_translated_calls_total',
    help: 'Requests whose client and server speak different eras of the protocol.',
  });
  readonly #requestBytes = new Counter({
    name: 'mcp_portage_request_bytes_total',
    help: 'Bytes of the requests of clients.',
  });
  readonly #responseBytes = new Counter({
    name: 'mcp_portage_response_bytes_total',
    help: 'Bytes sent to clients for requests.',
  });
  readonly #refusals = new Counter({
    name: 'mcp_portage_session_refusals_total',
    help: 'Clients that got no session.',
  });
  readonly #refusedRequests = new Counter({
    name: 'mcp_portage_refused_requests_total',
    help: 'HTTP requests and connections that were refused, by the code of the error.',
  });
  readonly #deprecated = new Counter({
    name: 'mcp_portage_deprecated_uses_total',
    help: 'Uses of what the specification has deprecated; by nobody: mcp-portage uses it toward the server.',
  });
  readonly #servers = new Map<string, ServerWords>();
  readonly #otherServers = new ServerWords(OTHER);
  /** Label sets of all servers. */
  readonly #known = new BoundedWords(MAX_OPERATIONS);
  /** The text being written for a scrape. */
  #text: Promise<readonly Buffer[]> | undefined;

  constructor({ inspect, clock, contentType, ofProcess }: MetricsParts) {
    this.#inspect = inspect;
    this.#clock = clock;
    this.contentType = contentType;
    this.#ofProcess = ofProcess;
  }

  /** Returns the text for Prometheus in pieces. Scrapes that overlap share one text. */
  text(): Promise<readonly Buffer[]> {
    this.#text ??= this.#write().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
  }

  async #write(): Promise<readonly Buffer[]> {
    const ofCalls = [this.#operations, this.#sessions, this.#clients, this.#calls, this.#translated];
    const ofTraffic = [this.#requestBytes, this.#responseBytes, this.#refusals, this.#refusedRequests];
    const ofState = inspectedGauges(this.#inspect());
    return writeMetrics([...ofCalls, ...ofTraffic, this.#deprecated, ...ofState, ...this.#ofProcess]);
  }

  opened(call: ObservedCall): OnCallEnded {
    return (ending) => this.#ended(call, ending);
  }

  connected(client: ObservedClient, _server: ObservedServer | undefined): OnClientLeft {
    const server = this.#wordsOf(client.server);
    const labels = connectionLabels(server.name, client);
    this.#clients.add(writeLabels({ ...labels, ...clientName(server, client) }));
    const sinceMs = this.#clock.now();
    return (reason) => {
      // ERR_SESSION_CLOSED is the normal end of a session.
      const error: Labels = reason === 'ERR_SESSION_CLOSED' ? {} : { error_type: reason };
      this.#sessions.observe(writeLabels({ ...labels, ...error }), (this.#clock.now() - sinceMs) / 1000);
    };
  }

  refused(client: ClientOrigin, reason: ErrorCode): void {
    this.#refusals.add(writeLabels({ ...trafficLabels(this.#wordsOf(client.server).name, client), reason }));
  }

  /**
   * Counts a rejected request or connection. The reason is one of our error codes or `connections`, so callers cannot
   * add series.
   */
  refusedRequest(reason: string): void {
    this.#refusedRequests.add(writeLabels({ reason }));
  }

  used(feature: DeprecatedFeature, by: Parameters<Observer['used']>[1]): void {
    const server = this.#wordsOf(by.server);
    this.#deprecated.add(
      writeLabels({ server: server.name, feature, ...(by.client && clientName(server, by.client)) }),
    );
  }

  #ended(call: ObservedCall, ending: CallEnding): void {
    const { client } = call;
    const server = this.#wordsOf(client.server);
    const traffic = writeLabels(trafficLabels(server.name, client));
    this.#operations.observe(this.#operationLabels(server, call, ending), ending.durationMs / 1000);
    this.#calls.add(writeLabels({ ...connectionLabels(server.name, client), ...clientName(server, client) }));
    this.#requestBytes.add(traffic, call.requestBytes);
    this.#responseBytes.add(traffic, ending.bytes);
    if (ending.server !== undefined && ending.server.era !== client.era) {
      this.#translated.add(writeLabels({ server: server.name, client_era: client.era, server_era: ending.server.era }));
    }
  }

  #operationLabels(server: ServerWords, { client, method, tool }: ObservedCall, ending: CallEnding): LabelText {
    const error = labelOfError(ending.outcome, server.rpcCodes);
    const eras: Labels = { client_era: client.era, ...(ending.server && { server_era: ending.server.era }) };
    const labels = writeLabels({
      ...connectionLabels(server.name, client),
      mcp_method_name: labelOfMethod(method),
      ...(tool !== undefined && { gen_ai_tool_name: server.labelOfTool(tool, ending.outcome) }),
      ...(error !== undefined && { error_type: error }),
      ...eras,
    });
    if (this.#known.has(labels)) return labels;
    if (server.operations.take(labels) && this.#known.take(labels)) return labels;
    // The remaining labels have few values, so a peer that invents words adds no more series.
    const rare = labelOfRareError(ending.outcome);
    return writeLabels({
      ...trafficLabels(server.name, client),
      mcp_method_name: OTHER,
      ...(rare !== undefined && { error_type: rare }),
      ...eras,
    });
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
