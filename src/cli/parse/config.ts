/** From what was given to the Config the bridge runs on: types, defaults, and which options go together. */

import type { ListenerConfig } from '../../config/listener.ts';
import type { ServerConfig } from '../../config/server.ts';
import type { Config, LogConfig } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { BridgeCommand } from '../command-line.ts';
import type { ConfigFile } from '../config-file/config-file.ts';
import {
  GivenOptions,
  inEnvironment,
  type OptionUse,
  onCommandLine,
  refuseInapplicable,
  type WrittenOptions,
} from '../options/given-options.ts';
import type { BridgeVerb } from '../options/option-spec.ts';
import { ENV_PREFIX, envNameOf, findOption, OPTIONS, VARIABLES } from '../options/option-table.ts';
import { suggest } from '../suggest.ts';
import { type ParsedCluster, parseCluster } from './cluster.ts';
import { tokenVariables } from './listener/access.ts';
import { parseListener } from './listener/listener.ts';
import { leadStreams } from './listener/streams.ts';
import { parseObservation } from './observing.ts';
import type { Environment } from './servers/child-environment.ts';
import { explainNoServer, type ParsedList, parseListed } from './servers/listed-servers.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { type ParsedServer, parseServer } from './servers/server.ts';
import * as value from './value.ts';

/** The process around the command line; handed in so that parsing stays pure. */
export interface Surroundings extends RemoteSurroundings {
  readonly platform: NodeJS.Platform;
  readonly stderrIsTerminal: boolean;
}

export interface ProbeOptions {
  /** For everything that is done with a server, in the order of the servers. */
  readonly timeoutsMs: readonly number[];
  readonly format: 'human' | 'json';
}

/** The options that a configuration was parsed from. */
export interface GivenOfConfig {
  readonly listener: GivenOptions;
  /** In the order of the servers. */
  readonly servers: readonly GivenOptions[];
}

export interface ParsedConfig {
  readonly config: Config;
  readonly given: GivenOfConfig;
  /** What only `probe` is told. */
  readonly probe: ProbeOptions;
  /** Names of servers of the file that are not served since their entries are wrong. */
  readonly leftOut: readonly string[];
  /** To be logged as warnings once there is a log. */
  readonly warnings: readonly string[];
}

/**
 * @param file what `--config` names
 * @throws BridgeError ERR_CONFIG_OPTION for a wrong value, ERR_CONFIG_COMBINATION for values that exclude each other
 */
export function parseConfig(command: BridgeCommand, around: Surroundings, file?: ConfigFile): ParsedConfig {
  const { verb, target, options } = command;
  const written = { commandLine: onCommandLine(options), environment: inEnvironment(around.env) };
  const use: OptionUse = { verb, target: file === undefined && target !== undefined ? target.kind : 'any' };
  refuseInapplicable(options, use);
  const given = new GivenOptions([written.commandLine, written.environment, file?.options ?? NOTHING], use);
  const { listener: http, streams, warnings } = parseListener(given, around, verb === 'serve' ? 'yes' : 'no');
  const { access } = http;
  const observed = parseObservation(given, around, verb === 'serve' ? http : undefined);
  const clustered = verb === 'serve' ? parseCluster(given, around) : NO_CLUSTER;
  const from = { verb, access, around, withheld: tokenVariables(given) };
  const servers: ParsedServer[] = [];
  if (target !== undefined) {
    const own = new GivenOptions([written.commandLine, written.environment], { verb, target: target.kind });
    servers.push(parseServer({ ...from, given: own, target, listing: undefined }));
  }
  const isStrict = given.required('strict-config', value.parseFlag);
  const listed = file === undefined ? NO_LIST : parseListed(file, { ...from, command, written, isStrict });
  servers.push(...listed.servers);
  const [first, ...others] = servers.map(({ server }) => server);
  if (first === undefined) throw new BridgeError('ERR_CONFIG_OPTION', explainNoServer(file));
  // A probe is a client of its own: it listens nowhere.
  const listener: ListenerConfig =
    verb === 'serve' ? { ...http, streams: leadStreams(streams, [first, ...others], given) } : { kind: 'pipes' };
  const config: Config = {
    listener,
    servers: [first, ...others],
    limits: {
      maxInFlight: given.required('max-in-flight', value.parsePositiveCount),
      maxChildren: given.optional('max-children', value.parsePositiveCount) ?? sumOfChildren([first, ...others]),
      shutdownGraceMs: given.required('shutdown-grace', value.parseDuration),
    },
    observation: observed.observation,
    cluster: clustered.cluster,
    log: parseLog(given, around, verb),
  };
  const probe: ProbeOptions = {
    timeoutsMs: config.servers.map(
      (server) => given.optional('timeout', value.parsePositiveDuration) ?? defaultProbeTimeout(server),
    ),
    format: given.required('json', value.parseFlag) ? 'json' : 'human',
  };
  return {
    config,
    given: { listener: given, servers: servers.map((parsed) => parsed.given) },
    probe,
    leftOut: listed.leftOut,
    warnings: [
      ...warnings,
      ...observed.warnings,
      ...clustered.warnings,
      ...(file?.warnings ?? []),
      ...listed.warnings,
      ...servers.flatMap((parsed) => parsed.warnings),
      ...warnOfUnknownVariables(around.env),
      ...warnOfMilliseconds([
        ...Object.values(written),
        ...(file === undefined ? [] : [file.options, ...file.servers.map((server) => server.options)]),
      ]),
    ],
  };
}

const NOTHING: WrittenOptions = new Map();
const NO_LIST: ParsedList = { servers: [], leftOut: [], warnings: [] };
const NO_CLUSTER: ParsedCluster = { cluster: undefined, warnings: [] };

function sumOfChildren(servers: readonly ServerConfig[]): number {
  return servers.reduce((sum, { limits }) => sum + limits.maxChildren, 0);
}

/** A command may have to download a package first. */
const COMMAND_PROBE_MS = 2 * 60_000;
/** Users take their time to log in in a browser. */
const LOGIN_PROBE_MS = 5 * 60_000;
/** A code to be entered elsewhere lasts for a quarter of an hour at most. */
const CODE_PROBE_MS = 16 * 60_000;
const URL_PROBE_MS = 15_000;

function defaultProbeTimeout({ target, remote: { login } }: ServerConfig): number {
  if (target.kind === 'command') return COMMAND_PROBE_MS;
  switch (login?.grant) {
    case 'device-code':
    case 'device-code-if-offered':
      return CODE_PROBE_MS;
    case 'authorization-code':
      return LOGIN_PROBE_MS;
    default:
      return URL_PROBE_MS;
  }
}

function parseLog(given: GivenOptions, around: Surroundings, verb: BridgeVerb): LogConfig {
  return {
    level:
      given.optional('log-level', value.parseChoice(['trace', 'debug', 'info', 'warn', 'error', 'silent'])) ??
      // The report of a probe is what was asked for; the log would only stand around it.
      (verb === 'serve' || verb === 'connect' ? 'info' : 'warn'),
    format:
      given.optional('log-format', value.parseChoice(['pretty', 'json'])) ??
      (around.stderrIsTerminal ? 'pretty' : 'json'),
  };
}

/**
 * Other bridges count in milliseconds. Taken for seconds, such a number is a limit of hours, which nobody notices before it
 * is needed; and nobody writes hours as thousands of seconds.
 */
function warnOfMilliseconds(layers: readonly WrittenOptions[]): readonly string[] {
  return layers.flatMap((layer) =>
    [...layer].flatMap(([name, { texts, source }]) => {
      const text = texts.at(-1) ?? '';
      const isSuspect = findOption(name)?.placeholder === 'duration' && /^([5-9]|[1-9]\d+)000$/.test(text);
      if (!isSuspect) return [];
      const hours = (Number(text) / 3600).toFixed(1);
      return [
        `${source} ${text}: a bare number is seconds, so these are ${hours} hours; milliseconds are written ${text}ms.`,
      ];
    }),
  );
}

/** A misspelt variable has no effect and nobody to say so; unlike on the command line it may not be ours at all. */
function warnOfUnknownVariables(env: Environment): readonly string[] {
  const known = [...OPTIONS.map(({ name }) => envNameOf(name)), ...VARIABLES.map(({ name }) => name)];
  const unknown = Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX) && !known.includes(name));
  return unknown.flatMap((name) => {
    const bare = (full: string) => full.slice(ENV_PREFIX.length).toLowerCase().replaceAll('_', '-');
    const [meant] = suggest(bare(name), known.map(bare));
    return meant === undefined ? [] : [`${name} is not a setting of mcp-portage; did you mean ${envNameOf(meant)}?`];
  });
}
