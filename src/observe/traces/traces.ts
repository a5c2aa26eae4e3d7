/** Spans of calls on their way to a collector, by the official SDK of OpenTelemetry. docs/guide/traces.md is for users. */
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
  /** Delivers what waits, as far as that takes no longer than a second. Never rejects. */
  close(): Promise<void>;
}

const NAME = 'mcp-portage';

/** Who ends a client waits for us, and some kill us after two seconds. */
const MAX_FLUSH_MS = 1000;

/** Exports under way: as many as a full queue needs at the end. A collector that never finishes an answer holds no more. */
const MAX_EXPORTS = 4;

/** Where to, how often, and which of them, the SDK reads from the environment. Called once in a process. */
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
    log.error({ err: error }, 'no trace of a call'),
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

/** What the environment says comes last, and wins. The command line is left out: it may hold secrets. */
function describe(version: string): Resource {
  const own = resourceFromAttributes({ 'service.name': NAME, 'service.version': version });
  const detected = detectResources({ detectors: [serviceInstanceIdDetector, envDetector] });
  return defaultResource().merge(own).merge(detected);
}
