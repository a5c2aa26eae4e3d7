/**
 * Exports spans of calls to a collector, with the official OpenTelemetry SDK. docs/guide/traces.md is the guide for
 * users.
 */
import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import type { TraceProtocol } from '../../config/observation.ts';
import type { Clock } from '../../deps.ts';
import type { Tracer } from '../../relay/tracer.ts';
import { CallSpans } from './call-spans.ts';
import { Complaints, reasonOf } from './complaints.ts';

export interface TracesOptions {
  readonly protocol: TraceProtocol;
  /** The version of mcp-portage. */
  readonly version: string;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface Traces {
  readonly tracer: Tracer;
  /** Exports the waiting spans, for at most a second. Never rejects. */
  close(): Promise<void>;
}

const NAME = 'mcp-portage';

/** Longest wait at exit: clients wait for the bridge to end, and some kill it after two seconds. */
const MAX_FLUSH_MS = 1000;

/**
 * Concurrent exports: as many as a full queue needs at exit. A limit is needed, since a collector may never complete
 * its response.
 */
const MAX_EXPORTS = 4;

/**
 * Starts exporting. The SDK reads the collector's address, the intervals and the sampling from the environment. Called
 * once per process.
 */
export function startTraces({ protocol, version, log, clock }: TracesOptions): Traces {
  const complaints = new Complaints(log, clock);
  const tell: DiagLogFunction = (...texts) =>
    complaints.tell(texts.filter((text) => typeof text === 'string').join(' '));
  const ignore = (): void => {};
  const logger = { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((error) => complaints.tell(reasonOf(error)));
  const provider = new BasicTracerProvider({
    resource: describe(version),
    spanProcessors: [new BatchSpanProcessor(createExporter(protocol))],
  });
  complaints.started();
  const spans = new CallSpans(provider.getTracer(NAME, version), (error) =>
    log.error({ err: error }, 'a trace could not be written'),
  );
  return {
    tracer: spans,
    async close() {
      const flushed = provider.shutdown().catch((error: unknown) => complaints.tell(reasonOf(error)));
      await Promise.race([flushed, new Promise<void>((resolve) => clock.after(MAX_FLUSH_MS, resolve))]);
      complaints.close();
    },
  };
}

function createExporter(protocol: TraceProtocol): SpanExporter {
  const options = { concurrencyLimit: MAX_EXPORTS };
  return protocol === 'http/json' ? new JsonExporter(options) : new ProtobufExporter(options);
}

/**
 * Describes this service. Values from the environment take precedence. The command line is left out, since it may hold
 * secrets.
 */
function describe(version: string): Resource {
  const own = resourceFromAttributes({ 'service.name': NAME, 'service.version': version });
  const detected = detectResources({ detectors: [serviceInstanceIdDetector, envDetector] });
  return defaultResource().merge(own).merge(detected);
}
