/** Parses URLs of servers at a broker: `mqtt://host:port/<server-name>?server-id=<id>`. */
import type { MqttAddress } from '../../config/server.ts';
import { isMqttId, isServerName } from '../../mqtt/names.ts';

const PORTS = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;

export interface MqttUrl {
  readonly address: MqttAddress;
  readonly serverName: string;
  readonly serverId: string | undefined;
  /** The account that the URL contains; a user name, or a user name and a password. */
  readonly user: string | undefined;
  readonly password: string | undefined;
}

export type ParsedMqttUrl =
  | { readonly ok: true; readonly value: MqttUrl }
  /** Completes a sentence about the URL. It shows nothing of it. */
  | { readonly ok: false; readonly problem: string };

export function isMqttUrl(text: string): boolean {
  return /^mqtts?:\/\//i.test(text);
}

export function parseMqttUrl(text: string): ParsedMqttUrl {
  if (text.includes('#')) return refuse('has a fragment, and the name of a server contains no #');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url?.protocol;
  if (url === undefined || (scheme !== 'mqtt:' && scheme !== 'mqtts:') || url.hostname === '' || url.port === '0') {
    return refuse(`cannot be read; expected one like ${EXAMPLE}`);
  }
  const [path, user, password] = [url.pathname.slice(1), url.username, url.password].map(decode);
  if (path === undefined || user === undefined || password === undefined) {
    return refuse('has a % that does not begin an escape such as %20');
  }
  if (path === '') return refuse(`lacks the name of the server, as in ${EXAMPLE}`);
  if (/[+#]/.test(path)) return refuse('has a wildcard in it, + or #; name one server');
  if (!isServerName(path)) {
    return refuse(
      'has a name of a server that cannot be a topic: it is too long, or a part between its slashes is empty',
    );
  }
  const ids = url.searchParams.getAll('server-id');
  const [serverId] = ids;
  if (ids.length !== [...url.searchParams].length || ids.length > 1) {
    return refuse('has a query other than ?server-id= with the id of one instance');
  }
  if (serverId !== undefined && !isMqttId(serverId)) {
    return refuse(
      'has an id of a server that cannot be a level of a topic: it is empty, too long, or contains /, + or #',
    );
  }
  const address: MqttAddress = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? PORTS[scheme] : Number(url.port),
    tls: scheme === 'mqtts:' ? 'on' : 'off',
  };
  const account = { user: user === '' ? undefined : user, password: password === '' ? undefined : password };
  return { ok: true, value: { address, serverName: path, serverId, ...account } };
}

const EXAMPLE = 'mqtt://192.168.1.10/site/kind/name';

function refuse(problem: string): ParsedMqttUrl {
  return { ok: false, problem };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
