/** Parses the command lines of `report`, `top` and `login --status`, which show data without starting a bridge. */
import type { TokenSource } from '../../config/access.ts';
import { BridgeError } from '../../errors.ts';
import { handshakeUrlOf } from '../../http/websocket/url.ts';
import type { BridgeCommand } from '../command-line.ts';
import { type OptionUse, refuseInapplicable } from '../options/applicable.ts';
import { GivenOptions, readProcess } from '../options/given-options.ts';
import { parseStatusToken } from './observing.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { findStateDirectory } from './servers/state-directory.ts';
import { parseServerUrl } from './servers/target.ts';

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
  verb: 'report' | 'top' | 'login',
): GivenOptions {
  const use: OptionUse = { verb, target: 'any', spelling: 'flags' };
  refuseInapplicable(options, use);
  return new GivenOptions(readProcess(options, around), use);
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
