/**
 * Reads the OpenTelemetry variables that decide about tracing. A mistake in them is a warning and never keeps the
 * bridge from starting, as they may be set for all programs of a machine. The SDK itself reads all other settings, such
 * as the sampler. [opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables]
 */
import type { ObservationConfig, TraceProtocol } from '../../config/observation.ts';
import type { Environment } from './servers/child-environment.ts';

export interface ParsedTraces {
  readonly config: ObservationConfig['traces'];
  readonly warnings: readonly string[];
}

const OFF: ParsedTraces = { config: undefined, warnings: [] };

/** The value in effect and the variable that it comes from. A variable for traces alone overrides the general one. */
interface Setting {
  readonly name: string;
  /** Undefined if both variables are unset or empty. */
  readonly value: string | undefined;
}

export function parseTraces(env: Environment): ParsedTraces {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return OFF;
  const exporters = (textOf(env.OTEL_TRACES_EXPORTER)?.toLowerCase() ?? '').split(',').map((name) => name.trim());
  const endpoint = settingOf(env, 'ENDPOINT');
  const isWanted = endpoint.value !== undefined || exporters.includes('otlp');
  if (!isWanted || exporters.includes('none')) return OFF;
  if (!exporters.includes('otlp') && exporters.some((name) => name !== '')) {
    return refuse('OTEL_TRACES_EXPORTER names an exporter that mcp-portage does not have; it has otlp');
  }
  if (endpoint.value !== undefined && !isHttpUrl(endpoint.value)) {
    return refuse(`${endpoint.name} is no URL that begins with http:// or https://`);
  }
  const protocol = settingOf(env, 'PROTOCOL');
  if (protocol.value !== undefined && !isSupported(protocol.value)) {
    const advice = `${PROTOCOLS.join(' and ')} are supported, at port 4318 of most collectors`;
    return refuse(`${protocol.name} names ${protocol.value === 'grpc' ? 'grpc' : 'an unknown protocol'}; ${advice}`);
  }
  return { config: { protocol: protocol.value ?? 'http/protobuf' }, warnings: [] };
}

/** Messages do not repeat the value of a variable, since it may hold a password. */
function refuse(reason: string): ParsedTraces {
  return { config: undefined, warnings: [`calls are not traced: ${reason}`] };
}

function settingOf(env: Environment, kind: 'ENDPOINT' | 'PROTOCOL'): Setting {
  const own = `OTEL_EXPORTER_OTLP_TRACES_${kind}`;
  const common = `OTEL_EXPORTER_OTLP_${kind}`;
  const value = textOf(env[own]);
  return value === undefined ? { name: common, value: textOf(env[common]) } : { name: own, value };
}

/** An empty value counts as none. */
function textOf(value: string | undefined): string | undefined {
  const text = value?.trim() ?? '';
  return text === '' ? undefined : text;
}

const PROTOCOLS = ['http/protobuf', 'http/json'] as const satisfies readonly TraceProtocol[];

function isSupported(protocol: string): protocol is TraceProtocol {
  return (PROTOCOLS as readonly string[]).includes(protocol);
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}
