/** Parses the options of `--dial`: the hubs that the bridge connects to in order to serve the clients there. */
import { resolve } from 'node:path';
import type { HubConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isLoopback } from '../../../http/addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { composeHeaders, tryToRead } from '../servers/headers.ts';
import { pickProxyEnvironment, type RemoteSurroundings } from '../servers/remote.ts';
import { type Parsed, parseText } from '../value.ts';
import { findToken } from './access.ts';
import { parseTokenSource } from './auth-value.ts';

export interface ParsedHubs {
  readonly hubs: readonly HubConfig[];
  readonly warnings: readonly string[];
}

const DETAILS = ['dial-header', 'dial-token', 'dial-ca'] as const;
const NONE: ParsedHubs = { hubs: [], warnings: [] };

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. The messages show no part of a URL, which may hold a key. */
export function parseHubs(given: GivenOptions, around: RemoteSurroundings): ParsedHubs {
  const places = given.list('dial', parsePlace);
  if (places.length === 0) {
    const detail = DETAILS.find((name) => given.isGiven(name));
    if (detail === undefined) return NONE;
    throw excluded(`${given.sourceOf(detail)} needs --dial: it says more about what is called there.`);
  }
  const source = given.sourceOf('dial');
  const urls = places.map((place) => parseHubUrl(readPlace(place, source, around), source));
  const headers = composeHeaders('dial-header', given, around.env);
  const written = given.optional('dial-token', parseTokenSource);
  const token = written && findToken(written, 'dial-token', { given, ...around });
  if (token !== undefined && headers.has('authorization')) {
    throw excluded(
      `${given.sourceOf('dial-token')} and a header Authorization are set, but a hub can be shown one credential only; leave one of them out.`,
    );
  }
  const ca = given.optional('dial-ca', parseText);
  const caFile = ca === undefined ? undefined : resolve(around.cwd, ca);
  const proxyEnv = pickProxyEnvironment(around.env);
  const hubs = urls.map((url) => ({ url, headers, token, caFile, proxyEnv }));
  return { hubs, warnings: urls.flatMap(warnOfPlainText) };
}

type Place = { readonly kind: 'here' | 'env' | 'file'; readonly text: string };

function parsePlace(text: string): Parsed<Place> {
  const [, kind, place = ''] = /^(env|file):(?!\/\/)(.+)$/s.exec(text) ?? [];
  if (kind === 'env' || kind === 'file') return { ok: true, value: { kind, text: place } };
  return text === '' ? { ok: false, expected: EXPECTED } : { ok: true, value: { kind: 'here', text } };
}

function readPlace({ kind, text }: Place, source: string, { env, cwd, readFile }: RemoteSurroundings): string {
  if (kind === 'here') return text;
  if (kind === 'file') return tryToRead(source, () => readFile(resolve(cwd, text))).text.trim();
  const value = env[text]?.trim();
  if (value) return value;
  throw refuse(`${source}: expected a URL in the variable ${text}; got nothing. Set it, or correct its name.`);
}

const EXPECTED = 'the URL of a WebSocket, which begins with wss:// or ws://, or where it stands: env:NAME or file:PATH';

function parseHubUrl(text: string, source: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'wss:' && url.protocol !== 'ws:')) {
    throw refuse(`${source}: expected ${EXPECTED}; got something else.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw refuse(`${source}: the URL has a user name or password in it; send it with --dial-token or --dial-header.`);
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
  const token = given.optional('dial-token', parseTokenSource);
  const places = given.list('dial', parsePlace);
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
