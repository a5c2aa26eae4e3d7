/**
 * Parses the options of one server, from the command line or a file: its address or process, and its limits for
 * clients.
 */
import { resolve } from 'node:path';
import type { AccessConfig } from '../../../config/access.ts';
import type { RemoteConfig } from '../../../config/remote.ts';
import type { ChildConfig, Listing, Protocol, ServerConfig, Target } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-spec.ts';
import { mappedVariables, parseMappedHeaders } from '../listener/access.ts';
import { hubVariables, parseHubs } from '../listener/hubs.ts';
import { parseSessions } from '../listener/sessions.ts';
import * as value from '../value.ts';
import { composeChildEnvironment, type EnvAssignment, parseEnvFile } from './child-environment.ts';
import { tryToRead, warnOfOpenFile } from './headers.ts';
import { parseRemote, type RemoteSurroundings } from './remote.ts';

export interface ServerRequest {
  readonly given: GivenOptions;
  readonly verb: BridgeVerb;
  readonly target: Target;
  readonly listing: Listing | undefined;
  readonly access: AccessConfig;
  readonly around: RemoteSurroundings;
  /** Names of variables that the bridge does not pass on to the server. */
  readonly withheld: readonly string[];
}

export interface ParsedServer {
  readonly server: ServerConfig;
  /** The options that the server was parsed from. */
  readonly given: GivenOptions;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION for a wrong value and ERR_CONFIG_COMBINATION for values that exclude each other. */
export function parseServer(request: ServerRequest): ParsedServer {
  const { given, verb, target, listing, access, around } = request;
  const { remote, warnings } = parseRemote(given, around, { target, verb, access });
  const mapHeaders = parseMappedHeaders(given);
  const { hubs, warnings: ofHubs } = parseHubs(given, around);
  const { child, warnings: ofChild } = parseChild(request);
  const { sessions, maxChildren } = parseSessions(given, { target, access, mapHeaders, hubs });
  const maxMessageBytes = given.required('max-message-bytes', value.parseMessageSize);
  const server: ServerConfig = {
    listing,
    target,
    protocol: parseProtocol(given, remote),
    remote,
    child,
    mapHeaders,
    tools: {
      include: given.list('include-tool', value.parseNamePattern),
      exclude: given.list('exclude-tool', value.parseNamePattern),
    },
    sessions,
    limits: {
      maxChildren,
      maxMessageBytes,
      maxLineBytes: given.isGiven('max-message-bytes') ? maxMessageBytes : undefined,
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
    hubs,
  };
  return { server, given, warnings: [...warnings, ...ofHubs, ...ofChild] };
}

function parseProtocol(given: GivenOptions, { transport }: RemoteConfig): Protocol {
  const protocol: Protocol = given.required('protocol', value.parseChoice(['auto', 'legacy', 'modern']));
  if (transport !== 'sse' || protocol !== 'modern') return protocol;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.sourceOf('transport')} sse is a transport of the legacy era, and ${given.sourceOf('protocol')} modern rules that out; leave one of them out.`,
  );
}

interface ParsedChild {
  readonly child: ChildConfig;
  readonly warnings: readonly string[];
}

function parseChild({ given, around, withheld: ofTheBridge }: ServerRequest): ParsedChild {
  const cwd = given.optional('cwd', value.parseText);
  const files = readEnvFiles(given, around);
  const { env, withheld, missing } = composeChildEnvironment({
    ours: around.env,
    inheritAll: given.required('inherit-env', value.parseFlag),
    assignments: [...files.assignments, ...given.list('env', parseAssignment)],
    withheldAlways: [...ofTheBridge, ...mappedVariables(given), ...hubVariables(given)],
    platform: around.platform,
  });
  if (missing.length > 0) {
    const isInFile = given.standsInFile('env');
    const names = isInFile ? 'the variables that are named here' : missing.join(', ');
    const wayOut = isInFile ? 'NAME=value' : `--env ${missing[0]}=value`;
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `${given.sourceOf('env')}: expected ${names} to be set in this environment, to copy it to the server; it is not. Set it, or write ${wayOut}.`,
    );
  }
  const child: ChildConfig = {
    cwd: cwd === undefined ? undefined : resolve(around.cwd, cwd),
    env,
    withheldEnv: withheld,
    pty: given.required('pty', value.parseFlag),
  };
  return { child, warnings: files.warnings };
}

/** Throws ERR_CONFIG_OPTION; its message never shows the content of the file. */
function readEnvFiles(given: GivenOptions, { cwd, readFile }: RemoteSurroundings) {
  const assignments: EnvAssignment[] = [];
  const warnings: string[] = [];
  for (const path of given.list('env-from', value.parseText)) {
    const source = given.sourceWith('env-from', resolve(cwd, path));
    const { text, isOpenToAll } = tryToRead(source, () => readFile(resolve(cwd, path)));
    const found = parseEnvFile(text);
    if (found === undefined) throw new BridgeError('ERR_CONFIG_OPTION', `${source}: this file is not a text file.`);
    assignments.push(...found);
    if (isOpenToAll) warnings.push(warnOfOpenFile(source));
  }
  return { assignments, warnings };
}

function parseAssignment(text: string): value.Parsed<EnvAssignment> {
  const match = /^([^=\s]+)(?:=(.*))?$/s.exec(text);
  if (match?.[1] === undefined) return { ok: false, expected: 'NAME=value, or NAME to copy it from this environment' };
  return { ok: true, value: { name: match[1], value: match[2] } };
}
