/**
 * Parses the options of one server, from the command line or a file: its address or process, and its limits for
 * clients.
 */
import type { AccessConfig } from '../../../config/access.ts';
import { collectMapped } from '../../../config/aggregate.ts';
import type { RemoteConfig } from '../../../config/remote.ts';
import type { ChildConfig, Listing, Protocol, ServerConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import type { WrittenTool } from '../../config-file/config-file.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-table.ts';
import { mappedVariables, parseMappedHeaders } from '../listener/access.ts';
import { hubVariables, parseHubs } from '../listener/hubs.ts';
import { parseSessions } from '../listener/sessions.ts';
import { composeChildEnvironment, type EnvAssignment, parseEnvFile } from './child-environment.ts';
import { tryToRead, warnOfOpenFile } from './headers.ts';
import { parseRemote, type RemoteSurroundings } from './remote.ts';
import { parseTools } from './tool-shapes.ts';

export interface ServerRequest {
  readonly given: GivenOptions;
  readonly verb: BridgeVerb;
  readonly target: ServerConfig['target'];
  readonly listing: Listing | undefined;
  /** The tools under `portage.tools` in the entry of the server, by the names that the server gives them. */
  readonly writtenTools: ReadonlyMap<string, WrittenTool>;
  readonly access: AccessConfig;
  readonly around: RemoteSurroundings;
  /** Names of variables that the bridge does not pass on to the server. */
  readonly withheld: readonly string[];
  /** The servers that the aggregate is made of; undefined for any other server. */
  readonly members?: readonly ServerConfig[] | undefined;
}

export interface ParsedServer {
  readonly server: ServerConfig;
  /** The options that the server was parsed from. */
  readonly given: GivenOptions;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION for a wrong value and ERR_CONFIG_COMBINATION for values that exclude each other. */
export function parseServer(request: ServerRequest): ParsedServer {
  const { given, verb, target, listing, access, around, members, writtenTools } = request;
  const { remote, warnings } = parseRemote(given, around, { target, verb, access });
  const mapHeaders = members === undefined ? parseMappedHeaders(given) : collectMapped(members);
  const { hubs, warnings: ofHubs } = parseHubs(given, around);
  const { child, warnings: ofChild } = parseChild(request);
  const { sessions, maxChildren } = parseSessions(given, { target, access, mapHeaders, hubs });
  const maxMessageBytes = given.get('maxMessageBytes');
  const server: ServerConfig = {
    listing,
    target,
    protocol: parseProtocol(given, remote),
    remote,
    child,
    mapHeaders,
    watch: target.kind === 'command' ? given.get('watch') : [],
    tools: parseTools({ given, written: writtenTools, access }),
    pinTools: given.get('pinTools'),
    replaySpeed: given.get('replaySpeed'),
    sessions,
    limits: {
      maxChildren,
      maxMessageBytes,
      maxLineBytes: given.isGiven('maxMessageBytes') ? maxMessageBytes : undefined,
      maxJsonDepth: given.get('maxJsonDepth'),
      maxSessionInFlight: given.get('maxSessionInFlight'),
      maxSessionStreams: given.get('maxSessionStreams'),
      maxReplayBytes: given.get('maxReplayBytes'),
      maxResultBytes: given.get('maxResultBytes'),
      maxParkedCalls: given.get('maxParkedCalls'),
      maxParkedBytes: given.get('maxParkedBytes'),
      requestTimeoutMs: given.get('requestTimeout'),
      maxCallTimeMs: given.get('maxCallTime'),
      hangTimeoutMs: given.get('hangTimeout'),
    },
    hubs,
  };
  return { server, given, warnings: [...warnings, ...ofHubs, ...ofChild] };
}

function parseProtocol(given: GivenOptions, { transport }: RemoteConfig): Protocol {
  const protocol: Protocol = given.get('protocol');
  if (transport !== 'sse' || protocol !== 'modern') return protocol;
  throw new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${given.placeOf('transport')} sse is a transport of the legacy era, and ${given.placeOf('protocol')} modern rules that out; leave one of them out.`,
  );
}

interface ParsedChild {
  readonly child: ChildConfig;
  readonly warnings: readonly string[];
}

function parseChild({ given, around, withheld: ofTheBridge }: ServerRequest): ParsedChild {
  const files = readEnvFiles(given, around);
  const { env, withheld, missing } = composeChildEnvironment({
    ours: around.env,
    inheritAll: given.get('inheritEnv'),
    assignments: [...files.assignments, ...given.get('env')],
    withheldAlways: [...ofTheBridge, ...mappedVariables(given), ...hubVariables(given)],
    platform: around.platform,
  });
  if (missing.length > 0) {
    const isInFile = given.isInFile('env');
    const names = isInFile ? 'the variables that are named here' : missing.join(', ');
    const wayOut = isInFile ? 'NAME=value' : `${given.nameOf('env')} ${missing[0]}=value`;
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `${given.placeOf('env')}: expected ${names} to be set in this environment, to copy it to the server; it is not. Set it, or write ${wayOut}.`,
    );
  }
  const child: ChildConfig = {
    cwd: given.get('cwd'),
    env,
    withheldEnv: withheld,
    pty: given.get('pty'),
  };
  return { child, warnings: files.warnings };
}

/** Throws ERR_CONFIG_OPTION; its message never shows the content of the file. */
function readEnvFiles(given: GivenOptions, { readFile }: RemoteSurroundings) {
  const assignments: EnvAssignment[] = [];
  const warnings: string[] = [];
  for (const path of given.get('envFrom')) {
    const source = given.placeWith('envFrom', path);
    const { text, isOpenToAll } = tryToRead(source, () => readFile(path));
    const found = parseEnvFile(text);
    if (found === undefined) throw new BridgeError('ERR_CONFIG_OPTION', `${source}: this file is not a text file.`);
    assignments.push(...found);
    if (isOpenToAll) warnings.push(warnOfOpenFile(source));
  }
  return { assignments, warnings };
}
