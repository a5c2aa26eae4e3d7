/** Parses the options of `--dial`: the hubs that the bridge connects to in order to serve the clients there. */
import type { HubConfig, MqttHubConfig } from '../../../config/server.ts';
import { BridgeError } from '../../../errors.ts';
import { isLoopback } from '../../../http/addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { isMqttUrl, parseMqttUrl } from '../mqtt-url.ts';
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
  const found = places.map((place) => ({ ...place, text: readPlace(place, source, around) }));
  const brokers = found.filter(({ text }) => isMqttUrl(text));
  const urls = found.filter(({ text }) => !isMqttUrl(text)).map(({ text }) => parseHubUrl(text, given));
  if (urls.length === 0) refuseHttpDetails(given);
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
  const webSockets = urls.map((url) => ({ kind: 'websocket', url, headers, token, caFile, proxyEnv }) as const);
  const offered = brokers.map((place) => parseBroker(place, caFile, given));
  return {
    hubs: [...webSockets, ...offered],
    warnings: [...urls.flatMap(warnOfPlainText), ...offered.flatMap(warnOfPlainMqtt)],
  };
}

/** A broker is shown an account, which its URL contains. */
function refuseHttpDetails(given: GivenOptions): void {
  const detail = (['dialHeader', 'dialToken'] as const).find((name) => given.isGiven(name));
  if (detail === undefined) return;
  throw excluded(
    `${given.placeOf(detail)} is for hubs that are called over WebSocket, and ${given.nameOf('dial')} names a broker only; put the account into the URL, as mqtts://user:password@host/name, and the URL into a variable: ${given.nameOf('dial')} env:NAME.`,
  );
}

function parseBroker({ kind, text }: HubPlace, caFile: string | undefined, given: GivenOptions): MqttHubConfig {
  const source = given.placeOf('dial');
  const parsed = parseMqttUrl(text);
  if (!parsed.ok) throw refuse(`${source}: the URL ${parsed.problem}.`);
  const { address, serverName, serverId, user, password } = parsed.value;
  if (serverId !== undefined) {
    throw refuse(
      `${source}: the URL has a query; a server that is offered gets a new id with each start. Leave it out.`,
    );
  }
  if (kind === 'here' && (user !== undefined || password !== undefined)) {
    throw refuse(
      `${source}: the URL has a user name or password in it, where other users of this machine can read it. Put the URL into a variable, and write ${given.nameOf('dial')} env:NAME.`,
    );
  }
  const account = { user, password: password === undefined ? undefined : ({ kind: 'value', password } as const) };
  return { kind: 'mqtt', address, serverName, account, caFile };
}

/** Over mqtt, anyone on the network path could read the messages and the password. */
function warnOfPlainMqtt({ address: { host, tls } }: MqttHubConfig): readonly string[] {
  if (tls === 'on' || isLoopback(host)) return [];
  return [
    `Calling ${host} over mqtt: anybody on the network path can read along, and use the server in its place. Use mqtts if the broker has it.`,
  ];
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
