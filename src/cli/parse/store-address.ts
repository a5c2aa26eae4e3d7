import type { StoreAddress, StoreHost } from '../../config/cluster.ts';
import { BridgeError } from '../../errors.ts';

const EXPECTED =
  'a URL like redis://user:password@host:6379/0, rediss:// for TLS, redis+sentinel://host1:26379,host2:26379/master-name (with ?sentinel-user=…&sentinel-password=… where they ask for them) or redis+cluster://host1:6379,host2:6379';
const FORM = /^redis(s)?(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;

/** @throws BridgeError ERR_CONFIG_OPTION, which does not repeat the address, because it may contain a password */
export function parseRedisAddress(text: string, source: string): StoreAddress {
  const refuse = (what: string): BridgeError =>
    new BridgeError('ERR_CONFIG_OPTION', `${source}: expected ${EXPECTED}; ${what}.`);
  const [matched, secure, variant, credentials, hostList = '', path = '', query] = FORM.exec(text) ?? [];
  if (matched === undefined) throw refuse('got something else');
  const topology = toTopology(variant);
  const parts = path.split('/').filter((part) => part !== '');
  const masterName = topology === 'sentinel' ? parts.shift() : undefined;
  if (topology === 'sentinel' && masterName === undefined)
    throw refuse('the name of the master is missing after the hosts');
  const [database = '0', ...rest] = parts;
  if (!/^\d{1,4}$/.test(database) || rest.length > 0) throw refuse('the database is not a number');
  if (topology === 'cluster' && database !== '0') throw refuse('a cluster has no databases');
  const [first, ...others] = hostList.split(',').map((host) => parseHost(host, topology));
  if (first === undefined || others.includes(undefined)) throw refuse('a host is none');
  if (topology === 'single' && others.length > 0)
    throw refuse('several hosts need redis+sentinel:// or redis+cluster://');
  const [user, password] = splitCredentials(credentials);
  return {
    topology,
    hosts: [first, ...others.filter((host) => host !== undefined)],
    masterName,
    user: decode(user, refuse),
    password: decode(password, refuse),
    sentinelLogin: parseSentinelLogin(query, topology, refuse),
    database: Number(database),
    tls: secure !== undefined,
  };
}

function toTopology(variant: string | undefined): StoreAddress['topology'] {
  const lower = variant?.toLowerCase();
  return lower === 'sentinel' || lower === 'cluster' ? lower : 'single';
}

function parseHost(text: string, topology: StoreAddress['topology']): StoreHost | undefined {
  const [, bracketed, name, port] = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = bracketed ?? name;
  const number = port === undefined ? (topology === 'sentinel' ? 26_379 : 6379) : Number(port);
  return host === undefined || number > 65_535 ? undefined : { host, port: number };
}

/** Splits `user:password`. A password without a user is written with a leading colon. */
function splitCredentials(text: string | undefined): readonly [string | undefined, string | undefined] {
  if (text === undefined || text === '') return [undefined, undefined];
  const colon = text.indexOf(':');
  if (colon < 0) return [text, undefined];
  return [colon === 0 ? undefined : text.slice(0, colon), text.slice(colon + 1)];
}

const SENTINEL_USER = 'sentinel-user';
const SENTINEL_PASSWORD = 'sentinel-password';

function parseSentinelLogin(
  query: string | undefined,
  topology: StoreAddress['topology'],
  refuse: (what: string) => BridgeError,
): StoreAddress['sentinelLogin'] {
  if (query === undefined) return undefined;
  const given = new URLSearchParams(query);
  const password = given.get(SENTINEL_PASSWORD);
  const isKnown = [...given.keys()].every((name) => name === SENTINEL_USER || name === SENTINEL_PASSWORD);
  if (topology !== 'sentinel' || !isKnown) throw refuse('what follows the question mark is none of that');
  if (password === null || password === '') throw refuse(`${SENTINEL_PASSWORD} is missing`);
  return { user: given.get(SENTINEL_USER) ?? undefined, password };
}

function decode(text: string | undefined, refuse: (what: string) => BridgeError): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    throw refuse('user or password hold a percent sign that is not written as %25');
  }
}
