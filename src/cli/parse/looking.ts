/** Parses the command lines of `report`, `top`, `view` and `login --status`, which show data without starting a bridge. */
import { resolve } from 'node:path';
import type { TokenSource } from '../../config/access.ts';
import { compileNamePattern, type MatchName } from '../../config/name-pattern.ts';
import { BridgeError } from '../../errors.ts';
import { handshakeUrlOf } from '../../http/websocket/url.ts';
import type { BridgeCommand } from '../command-line.ts';
import { type OptionUse, refuseInapplicable } from '../options/applicable.ts';
import { GivenOptions, readProcess } from '../options/given-options.ts';
import { parseStatusToken } from './observing.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { findStateDirectory } from './servers/state-directory.ts';
import { isUrlLike, parseServerUrl } from './servers/target.ts';

/**
 * A running bridge to query, and the token that permits it. With `all`, all replicas are shown, else the one that
 * answers.
 */
export interface LookedAt {
  /** Any address of the bridge. */
  readonly url: URL;
  readonly token: TokenSource | undefined;
  readonly replicas: 'one' | 'all';
}

export interface ReportRequest {
  /**
   * A running bridge, or the folder in which bridges keep their counts: the report then covers all of these bridges.
   */
  readonly source: LookedAt | { readonly stateDirectory: string };
  readonly windowMs: number;
  readonly format: 'human' | 'json';
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseReport(command: BridgeCommand, around: RemoteSurroundings): ReportRequest {
  const given = givenTo(command, around, 'report');
  if (command.target !== undefined && command.target.kind !== 'url')
    throw refuse(
      'report asks a running bridge over HTTP: give its URL, as in\n  mcp-portage report --url http://127.0.0.1:8000',
    );
  const written = given.get('url');
  const named = command.target?.kind === 'url' ? command.target.url : written && parseBridgeUrl(written);
  const url = named && handshakeUrlOf(named);
  const windowMs = given.get('since');
  const format = given.get('json') ? 'json' : 'human';
  if (url) {
    const source = { url, token: parseStatusToken(given, around), replicas: parseReplicas(given) };
    return { source, windowMs, format };
  }
  if (given.isGiven('all')) {
    const message = `${given.placeOf('all')} asks running replicas; say with --url where they are.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  const stateDirectory = findStateDirectory(given, around);
  if (stateDirectory === undefined)
    throw refuse(
      'There is no home folder here; say with --state-dir where counts are kept, or ask a running bridge with --url.',
    );
  return { source: { stateDirectory }, windowMs, format };
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseTop(command: BridgeCommand, around: RemoteSurroundings): LookedAt {
  const given = givenTo(command, around, 'top');
  if (command.target?.kind !== 'url') {
    throw refuse('top shows a running bridge: give any address of it, as in\n  mcp-portage top http://127.0.0.1:8000');
  }
  const url = handshakeUrlOf(command.target.url);
  return { url, token: parseStatusToken(given, around), replicas: parseReplicas(given) };
}

export interface ViewRequest {
  /** A recording, or a running bridge with its token. */
  readonly source:
    | { readonly kind: 'file'; readonly path: string; readonly mode: 'once' | 'follows' }
    | { readonly kind: 'bridge'; readonly url: URL; readonly token: TokenSource | undefined };
  readonly filter: {
    readonly outcomes: 'all' | 'failed';
    readonly method: MatchName | undefined;
    readonly client: MatchName | undefined;
    readonly server: MatchName | undefined;
  };
  readonly format: 'lines' | 'full' | 'json' | 'full-json';
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseView({ options, words }: ViewWords, around: RemoteSurroundings): ViewRequest {
  const given = givenTo({ options }, around, 'view');
  const [place, ...others] = words;
  if (place === undefined || others.length > 0) {
    throw refuse(
      'view shows one recording, or one running bridge, as in\n  mcp-portage view session.jsonl\n  mcp-portage view http://127.0.0.1:8000',
    );
  }
  const match = (name: 'method' | 'client' | 'server'): MatchName | undefined => {
    const pattern = given.get(name);
    return pattern === undefined ? undefined : compileNamePattern(pattern);
  };
  const filter = {
    outcomes: given.get('errors') ? ('failed' as const) : ('all' as const),
    method: match('method'),
    client: match('client'),
    server: match('server'),
  };
  const format = given.get('json') ? (given.get('full') ? 'full-json' : 'json') : given.get('full') ? 'full' : 'lines';
  return { source: parseViewed(place, given, around), filter, format };
}

type ViewWords = Pick<BridgeCommand, 'options'> & { readonly words: readonly string[] };

function parseViewed(place: string, given: GivenOptions, around: RemoteSurroundings): ViewRequest['source'] {
  if (!isUrlLike(place)) {
    if (given.isGiven('statusToken') && !given.isFromEnvironment('statusToken')) {
      const message = `${given.placeOf('statusToken')} opens a running bridge; a file needs no token. Leave it out.`;
      throw new BridgeError('ERR_CONFIG_COMBINATION', message);
    }
    return { kind: 'file', path: resolve(around.cwd, place), mode: given.get('follow') ? 'follows' : 'once' };
  }
  const url = handshakeUrlOf(parseBridgeUrl(place));
  return { kind: 'bridge', url, token: parseStatusToken(given, around) };
}

/** Returns the folder whose logins `login --status` lists. Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseStateDirectory(options: BridgeCommand['options'], around: RemoteSurroundings): string | undefined {
  return findStateDirectory(givenTo({ options }, around, 'login'), around);
}

function parseReplicas(given: GivenOptions): LookedAt['replicas'] {
  return given.get('all') ? 'all' : 'one';
}

function parseBridgeUrl(text: string): URL {
  const target = parseServerUrl(text);
  if (target.kind === 'url') return target.url;
  throw refuse('A running bridge is looked at over HTTP; give its URL, like http://127.0.0.1:8000.');
}

function givenTo(
  { options }: Pick<BridgeCommand, 'options'>,
  around: RemoteSurroundings,
  verb: 'report' | 'top' | 'view' | 'login',
): GivenOptions {
  const use: OptionUse = { verb, target: 'any', spelling: 'flags' };
  refuseInapplicable(options, use);
  return new GivenOptions(readProcess(options, around), use);
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
