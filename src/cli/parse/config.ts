/** From what was given to the Config the bridge runs on: types, defaults, and which options go together. */
import { resolve } from 'node:path';
import type {
  ChildConfig,
  Config,
  EndpointConfig,
  HttpListenerConfig,
  ListenerConfig,
  LogConfig,
  Protocol,
  RemoteConfig,
  ServerConfig,
  Target,
} from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { BridgeCommand } from '../command-line.ts';
import { GivenOptions } from '../options/given-options.ts';
import type { BridgeVerb } from '../options/option-spec.ts';
import { ENV_PREFIX, envNameOf, OPTIONS, type OptionName, VARIABLES } from '../options/option-table.ts';
import { suggest } from '../suggest.ts';
import { type ListenAddress, mappedVariables, parseAccess, tokenVariables } from './access.ts';
import { composeChildEnvironment, type EnvAssignment, type Environment } from './child-environment.ts';
import { parseRemote, type RemoteSurroundings } from './remote.ts';
import { parseSessions } from './sessions.ts';
import * as value from './value.ts';

/** The process around the command line; handed in so that parsing stays pure. */
export interface Surroundings extends RemoteSurroundings {
  readonly platform: NodeJS.Platform;
  readonly stderrIsTerminal: boolean;
}

export interface ProbeOptions {
  /** The time limit for everything together. */
  readonly timeoutMs: number;
  readonly format: 'human' | 'json';
}

export interface ParsedConfig {
  readonly config: Config;
  /** What only `probe` is told. */
  readonly probe: ProbeOptions;
  /** To be logged as warnings once there is a log. */
  readonly warnings: readonly string[];
}

/** Served by the bridge itself on every port. */
const OWN_PATHS = ['/healthz', '/readyz'];

/** Throws ERR_CONFIG_OPTION for a wrong value and ERR_CONFIG_COMBINATION for values that exclude each other. */
export function parseConfig(
  { verb, target, options }: Omit<BridgeCommand, 'kind'>,
  around: Surroundings,
): ParsedConfig {
  const given = new GivenOptions(options, around.env, { verb, target: target.kind });
  const listen: ListenAddress = {
    host: given.required('host', value.parseListenHost),
    port: given.required('port', value.parsePort),
    tls: parseTls(given, around),
  };
  const endpoints = parseEndpoints(given);
  const { remote, warnings } = parseRemote(given, around, { target, verb });
  const { env, cwd } = around;
  const listens = verb === 'serve' ? 'yes' : 'no';
  const { access, mapHeaders, warnings: ofAccess } = parseAccess({ given, env, cwd, listen, endpoints, listens });
  const maxHeaderBytes = given.required('max-header-bytes', value.parseMessageSize);
  // A probe is a client of its own: it listens nowhere.
  const listener: ListenerConfig =
    verb === 'serve'
      ? { kind: 'http', ...listen, endpoints, access, maxHeaderBytes, proxyEnv: remote.proxyEnv }
      : { kind: 'pipes' };
  const { sessions, maxChildren } = parseSessions(given, { target, access, mapHeaders });
  const server: ServerConfig = {
    target,
    protocol: parseProtocol(given, remote),
    remote,
    child: parseChild(given, around),
    mapHeaders,
    tools: {
      include: given.list('include-tool', value.parseText),
      exclude: given.list('exclude-tool', value.parseText),
    },
    sessions,
    limits: {
      maxMessageBytes: given.required('max-message-bytes', value.parseMessageSize),
      maxJsonDepth: given.required('max-json-depth', value.parseJsonDepth),
      maxInFlightPerSession: given.required('max-session-in-flight', value.parsePositiveCount),
      maxStreamsPerSession: given.required('max-session-streams', value.parsePositiveCount),
      maxReplayBytes: given.required('max-replay-bytes', value.parseMessageSize),
      maxParkedCalls: given.required('max-parked-calls', value.parsePositiveCount),
      maxParkedBytes: given.required('max-parked-bytes', value.parseMessageSize),
      requestTimeoutMs: given.required('request-timeout', value.parseDuration),
      maxCallMs: given.required('max-call-time', value.parseDuration),
      hangTimeoutMs: given.required('hang-timeout', value.parseDuration),
    },
  };
  const config: Config = {
    listener,
    servers: [server],
    limits: {
      maxInFlight: given.required('max-in-flight', value.parsePositiveCount),
      maxChildren,
      shutdownGraceMs: given.required('shutdown-grace', value.parseDuration),
    },
    log: parseLog(given, around, verb),
  };
  const probe: ProbeOptions = {
    timeoutMs: given.optional('timeout', value.parsePositiveDuration) ?? defaultProbeTimeout(target, remote),
    format: given.required('json', value.parseFlag) ? 'json' : 'human',
  };
  return { config, probe, warnings: [...ofAccess, ...warnings, ...warnOfStrangers(around.env)] };
}

/** Users take their time to log in, and a command may have to download a package first. */
function defaultProbeTimeout({ kind }: Target, { login }: RemoteConfig): number {
  if (kind === 'command') return 2 * 60_000;
  return login?.grant === 'authorization-code' ? 5 * 60_000 : 15_000;
}

function parseProtocol(given: GivenOptions, { transport }: RemoteConfig): Protocol {
  const protocol: Protocol = given.required('protocol', value.parseChoice(['auto', 'legacy', 'modern']));
  if (transport !== 'sse' || protocol !== 'modern') return protocol;
  throw excluded(
    `${given.sourceOf('transport')} sse is a transport of the legacy era, and ${given.sourceOf('protocol')} modern rules that out; leave one of them out.`,
  );
}

function parseTls(given: GivenOptions, around: Surroundings): HttpListenerConfig['tls'] {
  const certFile = given.optional('tls-cert', value.parseText);
  const keyFile = given.optional('tls-key', value.parseText);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const [has, lacks] =
      certFile === undefined ? (['tls-key', 'tls-cert'] as const) : (['tls-cert', 'tls-key'] as const);
    throw excluded(`${given.sourceOf(has)} needs --${lacks}: https takes a certificate and its private key.`);
  }
  return { certFile: resolve(around.cwd, certFile), keyFile: resolve(around.cwd, keyFile) };
}

function parseEndpoints(given: GivenOptions): EndpointConfig {
  const taken = new Map<string, string>(OWN_PATHS.map((path) => [path, 'a health check of the bridge']));
  const claim = (name: OptionName): string => {
    const path = given.required(name, value.parseEndpointPath);
    const owner = taken.get(path);
    if (owner !== undefined) {
      throw excluded(`${given.sourceOf(name)}: the path ${path} is taken by ${owner}; every endpoint needs its own.`);
    }
    taken.set(path, given.sourceOf(name));
    return path;
  };
  const path = claim('path');
  const httpSse = given.required('sse', value.parseFlag) ? 'served' : 'off';
  // What is not served takes no path from others.
  const pathOf = (name: OptionName) =>
    httpSse === 'served' ? claim(name) : given.required(name, value.parseEndpointPath);
  return {
    path,
    httpSse,
    ssePath: pathOf('sse-path'),
    messagePath: pathOf('message-path'),
    baseUrl: given.optional('base-url', value.parseBaseUrl),
  };
}

function parseChild(given: GivenOptions, around: Surroundings): ChildConfig {
  const cwd = given.optional('cwd', value.parseText);
  const { env, withheld, missing } = composeChildEnvironment({
    ours: around.env,
    inheritAll: given.required('inherit-env', value.parseFlag),
    assignments: given.list('env', parseAssignment),
    withheldAlways: [...tokenVariables(given), ...mappedVariables(given)],
    platform: around.platform,
  });
  if (missing.length > 0) {
    const names = missing.join(', ');
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `${given.sourceOf('env')}: expected ${names} to be set in this environment, to copy it to the server; it is not. Set it, or write --env ${missing[0]}=value.`,
    );
  }
  return {
    cwd: cwd === undefined ? undefined : resolve(around.cwd, cwd),
    env,
    withheldEnv: withheld,
    pty: given.required('pty', value.parseFlag),
  };
}

function parseAssignment(text: string): value.Parsed<EnvAssignment> {
  const match = /^([^=\s]+)(?:=(.*))?$/s.exec(text);
  if (match?.[1] === undefined) return { ok: false, expected: 'NAME=value, or NAME to copy it from this environment' };
  return { ok: true, value: { name: match[1], value: match[2] } };
}

function parseLog(given: GivenOptions, around: Surroundings, verb: BridgeVerb): LogConfig {
  return {
    level:
      given.optional('log-level', value.parseChoice(['trace', 'debug', 'info', 'warn', 'error', 'silent'])) ??
      // The report of a probe is what was asked for; the log would only stand around it.
      (verb === 'probe' ? 'warn' : 'info'),
    format:
      given.optional('log-format', value.parseChoice(['pretty', 'json'])) ??
      (around.stderrIsTerminal ? 'pretty' : 'json'),
  };
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}

/** A misspelt variable has no effect and nobody to say so; unlike on the command line it may not be ours at all. */
function warnOfStrangers(env: Environment): readonly string[] {
  const known = [...OPTIONS.map(({ name }) => envNameOf(name)), ...VARIABLES.map(({ name }) => name)];
  const strangers = Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX) && !known.includes(name));
  return strangers.flatMap((name) => {
    const bare = (full: string) => full.slice(ENV_PREFIX.length).toLowerCase().replaceAll('_', '-');
    const [meant] = suggest(bare(name), known.map(bare));
    return meant === undefined ? [] : [`${name} is not a setting of mcp-portage; did you mean ${envNameOf(meant)}?`];
  });
}
