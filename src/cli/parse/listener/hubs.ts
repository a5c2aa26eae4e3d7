/** Parses the options of `--dial`: the hubs that the bridge connects to in order to serve the clients there. */
import type { HubConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isLoopback } from '../../../http/addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { composeHeaders, tryToRead } from '../servers/headers.ts';
import { pickProxyEnvironment, type RemoteSurroundings } from '../servers/remote.ts';
import { findToken } from './access.ts';
import { EXPECTED_HUB, type HubPlace } from './hub-place.ts';

export interface ParsedHubs {
  readonly hubs: readonly HubConfig[];
  readonly warnings: readonly string[];
}

const DETAILS = ['dialHeader', 'dialToken', 'dialCa'] as const;
const NONE: ParsedHubs = { hubs: [], warnings: [] };

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. The messages show no part of a URL, which may hold a key. */
export function parseHubs(given: GivenOptions, around: RemoteSurroundings): ParsedHubs {
  const places = given.get('dial');
  if (places.length === 0) {
    const detail = DETAILS.find((name) => given.isGiven(name));
    if (detail === undefined) return NONE;
    throw excluded(`${given.placeOf(detail)} needs ${given.nameOf('dial')}: it says more about what is called there.`);
  }
  const source = given.placeOf('dial');
  const urls = places.map((place) => parseHubUrl(readPlace(place, source, around), given));
  const headers = composeHeaders('dialHeader', given);
  const written = given.get('dialToken');
  const token = written && findToken(written, 'dialToken', { given, ...around });
  if (token !== undefined && headers.has('authorization')) {
    throw excluded(
      `${given.placeOf('dialToken')} and a header Authorization are set, but a hub can be shown one credential only; leave one of them out.`,
    );
  }
  const caFile = given.get('dialCa');
  const proxyEnv = pickProxyEnvironment(around.env);
  const hubs = urls.map((url) => ({ url, headers, token, caFile, proxyEnv }));
  return { hubs, warnings: urls.flatMap(warnOfPlainText) };
}

function readPlace({ kind, text }: HubPlace, source: string, { env, readFile }: RemoteSurroundings): string {
  if (kind === 'here') return text;
  if (kind === 'file') return tryToRead(source, () => readFile(text)).text.trim();
  const value = env[text]?.trim();
  if (value) return value;
  throw refuse(`${source}: expected a URL in the variable ${text}; got nothing. Set it, or correct its name.`);
}

function parseHubUrl(text: string, given: GivenOptions): URL {
  const source = given.placeOf('dial');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'wss:' && url.protocol !== 'ws:')) {
    throw refuse(`${source}: expected ${EXPECTED_HUB}; got something else.`);
  }
  if (url.username !== '' || url.password !== '') {
    const others = `${given.nameOf('dialToken')} or ${given.nameOf('dialHeader')}`;
    throw refuse(`${source}: the URL has a user name or password in it; send it with ${others}.`);
  }
  url.hash = '';
  return url;
}

/** Over ws, anyone on the network path could read the messages and call the server's tools. */
function warnOfPlainText({ protocol, hostname }: URL): readonly string[] {
  if (protocol === 'wss:' || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return [];
  return [
    `Calling ${hostname} over ws: anybody on the network path can read along, and use the server in its place. Use wss if it has it.`,
  ];
}

/** Names of the variables with URLs and tokens of hubs. They are withheld from the wrapped server. */
export function hubVariables(given: GivenOptions): readonly string[] {
  const token = given.get('dialToken');
  const places = given.get('dial');
  return [
    ...places.flatMap(({ kind, text }) => (kind === 'env' ? [text] : [])),
    ...(token?.kind === 'env' ? [token.place] : []),
  ];
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
