/** Builds the bridge's Config from the given options: types, defaults, and combinations of options that are allowed. */

import { resolve } from 'node:path';
import type { ListenerConfig } from '../../config/listener.ts';
import type { ServerConfig, Target } from '../../config/server.ts';
import type { Config, LogConfig } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import { suggest } from '../../suggest.ts';
import type { BridgeCommand } from '../command-line.ts';
import type { ConfigFile } from '../config-file/config-file.ts';
import { type OptionUse, refuseInapplicable } from '../options/applicable.ts';
import { GivenOptions, type OptionLayer, readProcess, warnOfDoubts } from '../options/given-options.ts';
import { ENV_PREFIX, toCamelCase, variableOf } from '../options/option-names.ts';
import { type BridgeVerb, OPTIONS, VARIABLES } from '../options/option-table.ts';
import { type ParsedCluster, parseCluster } from './cluster.ts';
import { tokenVariables } from './listener/access.ts';
import { parseListener } from './listener/listener.ts';
import { leadGrpc, leadStreams } from './listener/streams.ts';
import { parseObservation } from './observing.ts';
import { chooseAggregate, parseAggregate } from './servers/aggregate.ts';
import type { Environment } from './servers/child-environment.ts';
import { warnOfShownHeaders } from './servers/headers.ts';
import { checkWatch, explainNoServer, type ParsedList, parseListed } from './servers/listed-servers.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { type ParsedServer, parseServer } from './servers/server.ts';

/** The process around the command line, passed in so that parsing stays pure. */
export interface Surroundings extends RemoteSurroundings {
  readonly platform: NodeJS.Platform;
  readonly stderrIsTerminal: boolean;
  /** Messages spell the names of options like this; by default as on the command line. */
  readonly spelling?: OptionUse['spelling'];
}

export interface ProbeOptions {
  /** Time limits for probing each server as a whole, in the order of the servers. */
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
  /** Used by the verb `probe` only. */
  readonly probe: ProbeOptions;
  /** Names of servers of the file that are not served because their entries are wrong. */
  readonly leftOut: readonly string[];
  /** Messages for the caller to log as warnings once the log exists. */
  readonly warnings: readonly string[];
}

/**
 * @param file the configuration file that `--config` names
 * @throws BridgeError ERR_CONFIG_OPTION for a wrong value, ERR_CONFIG_COMBINATION for values that exclude each other
 */
export function parseConfig(command: BridgeCommand, around: Surroundings, file?: ConfigFile): ParsedConfig {
  const { verb, options } = command;
  const target = command.target && withWholePath(command.target, around);
  const process = readProcess(options, around);
  const { spelling = 'flags' } = around;
  const isOnlyOne = file === undefined && target !== undefined;
  const use: OptionUse = { verb, target: isOnlyOne ? target.kind : 'any', spelling };
  refuseInapplicable(options, use);
  const given = new GivenOptions([...process, file?.options ?? NOTHING], use);
  const { listener: http, streams, grpc, warnings } = parseListener(given, around, verb === 'serve' ? 'yes' : 'no');
  const { access } = http;
  const observed = parseObservation(given, around, verb === 'serve' ? http : undefined);
  const clustered = verb === 'serve' ? parseCluster(given, around) : NO_CLUSTER;
  const from = { verb, access, around, withheld: tokenVariables(given) };
  const servers: ParsedServer[] = [];
  if (target !== undefined) {
    const own = new GivenOptions(process, { ...use, target: target.kind });
    servers.push(parseServer({ ...from, given: own, target, listing: undefined, writtenTools: new Map() }));
  }
  const isStrict = given.get('strictConfig');
  const aggregate = chooseAggregate(given, command, file);
  const listing = { ...from, command, process, isStrict, spelling, aggregate };
  const listed = file === undefined ? NO_LIST : parseListed(file, listing);
  if (file !== undefined && target === undefined) checkWatch(given, listed.servers, file);
  if (aggregate !== undefined && listed.servers.length > 0) {
    const layers = [...process, file?.options ?? NOTHING];
    const members = listed.servers.map(({ server }) => server);
    servers.push(parseAggregate({ ...from, layers, spelling, shows: aggregate, servers: members }));
  }
  servers.push(...listed.servers.filter(({ server }) => aggregate === undefined || isUsedBeside(server, verb)));
  const [first, ...others] = servers.map(({ server }) => server);
  if (first === undefined) throw new BridgeError('ERR_CONFIG_OPTION', explainNoServer(file));
  // Only `serve` listens. `probe` is a client itself and does not use the listener.
  const all = [first, ...others];
  const listener: ListenerConfig =
    verb === 'serve'
      ? { ...http, streams: leadStreams(streams, all, given), grpc: leadGrpc(grpc, all, given) }
      : { kind: 'pipes' };
  const config: Config = {
    listener,
    servers: [first, ...others],
    limits: {
      maxInFlight: given.get('maxInFlight'),
      maxChildren: given.get('maxChildren') ?? sumOfChildren([first, ...others]),
      shutdownGraceMs: given.get('shutdownGrace'),
    },
    observation: observed.observation,
    cluster: clustered.cluster,
    log: parseLog(given, around, verb),
  };
  const probe: ProbeOptions = {
    timeoutsMs: config.servers.map((server) => given.get('timeout') ?? defaultProbeTimeout(server)),
    format: given.get('json') ? 'json' : 'human',
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
      ...warnOfShownHeaders(options),
      ...warnOfUnknownVariables(around.env),
      ...warnOfDoubts([
        ...process,
        ...(file === undefined ? [] : [file.options, ...file.servers.map((server) => server.options)]),
      ]),
    ],
  };
}

/** The path of a recording is relative to the current folder. */
function withWholePath(target: Target, { cwd }: Surroundings): Target {
  return target.kind === 'replay' ? { ...target, file: resolve(cwd, target.file) } : target;
}

/** Returns true if a listed server is used where all are served as one: by itself, or as a part of the aggregate. */
function isUsedBeside({ listing }: ServerConfig, verb: BridgeVerb): boolean {
  if (verb === 'connect') return listing?.membership !== undefined;
  return verb === 'serve';
}

const NOTHING: OptionLayer = new Map();
const NO_LIST: ParsedList = { servers: [], leftOut: [], warnings: [] };
const NO_CLUSTER: ParsedCluster = { cluster: undefined, warnings: [] };

function sumOfChildren(servers: readonly ServerConfig[]): number {
  return servers.reduce((sum, { limits }) => sum + limits.maxChildren, 0);
}

/** A command may have to download a package first. */
const COMMAND_PROBE_MS = 2 * 60_000;
/** Time for a user to log in in a browser. */
const LOGIN_PROBE_MS = 5 * 60_000;
/** Longer than the lifetime of a device code, which is a quarter of an hour at most. */
const CODE_PROBE_MS = 16 * 60_000;
const URL_PROBE_MS = 15_000;

function defaultProbeTimeout({ target, remote: { login } }: ServerConfig): number {
  if (target.kind === 'command' || target.kind === 'aggregate') return COMMAND_PROBE_MS;
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
      given.get('logLevel') ??
      // A user who runs `probe` wants its report, so only warnings are logged around it.
      (verb === 'serve' || verb === 'connect' ? 'info' : 'warn'),
    format: given.get('logFormat') ?? (around.stderrIsTerminal ? 'pretty' : 'json'),
  };
}

/**
 * Warns of variables whose names are probably misspelled. Others are ignored: a variable, unlike a command-line option,
 * may belong to another program.
 */
function warnOfUnknownVariables(env: Environment): readonly string[] {
  const known = [...OPTIONS.map(({ variable }) => variable), ...VARIABLES.map(({ name }) => name)];
  const unknown = Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX) && !known.includes(name));
  return unknown.flatMap((name) => {
    const bare = (full: string) => full.slice(ENV_PREFIX.length).toLowerCase().replaceAll('_', '-');
    const [meant] = suggest(bare(name), known.map(bare));
    return meant === undefined
      ? []
      : [`${name} is not a setting of mcp-portage; did you mean ${variableOf(toCamelCase(meant))}?`];
  });
}
