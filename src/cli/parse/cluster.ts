/** Parses the options of a replica: the shared store, its own address, the shared key and the lease. */
import { X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { ClusterConfig, StoreAddress, StoreTls } from '../../config/cluster.ts';
import { BridgeError } from '../../errors.ts';
import { isLoopback } from '../../http/addresses.ts';
import type { GivenOptions } from '../options/given-options.ts';
import type { OptionName } from '../options/option-table.ts';
import { tryToRead } from './servers/headers.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { parseRedisAddress } from './store-address.ts';
import * as value from './value.ts';

/** With a shorter lease, the other replicas would take a busy one for dead. */
const MIN_LEASE_MS = 1000;

export interface ParsedCluster {
  readonly cluster: ClusterConfig | undefined;
  readonly warnings: readonly string[];
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseCluster(given: GivenOptions, around: RemoteSurroundings): ParsedCluster {
  const store = given.optional('store', value.parseText);
  if (store === undefined) {
    refuseWithoutStore(given);
    return { cluster: undefined, warnings: [] };
  }
  const advertise = given.optional('advertise', parseOrigin);
  const key = given.optional('cluster-key', parseKeySource);
  if (advertise === undefined)
    throw lacks(given, 'advertise', 'the address at which the other replicas reach this one');
  if (key === undefined) throw lacks(given, 'cluster-key', 'the secret that the replicas share');
  const address = parseRedisAddress(store, given.sourceOf('store'));
  const cluster: ClusterConfig = {
    store: {
      address,
      tls: parseTls(address, given, around),
      prefix: given.required('store-prefix', parsePrefix),
    },
    advertise,
    keys: findKeys(key, given, around),
    leaseMs: given.required('lease', parseLease),
    limits: given.required('cluster-limits', value.parseFlag) ? 'of-all-replicas' : 'of-each-replica',
  };
  const isLocal = isLoopback(advertise.hostname.replace(/^\[|\]$/g, ''));
  return { cluster, warnings: isLocal ? [warnOfLoopback(given)] : [] };
}

function refuseWithoutStore(given: GivenOptions): void {
  const alone = ([...TLS_OPTIONS, 'advertise', 'cluster-key', 'store-prefix', 'lease', 'cluster-limits'] as const).find(
    (name) => given.isGiven(name),
  );
  if (alone === undefined) return;
  const message = `${given.sourceOf(alone)} is for several replicas, and needs --store: what they share.`;
  throw new BridgeError('ERR_CONFIG_COMBINATION', message);
}

function lacks(given: GivenOptions, name: OptionName, what: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', `${given.sourceOf('store')} needs --${name}: ${what}.`);
}

const TLS_OPTIONS = ['store-ca', 'store-client-cert', 'store-client-key'] as const;

/**
 * Reads the files once. A certificate or key that cannot be used is an error at startup, not at the first connection.
 */
function parseTls({ tls }: StoreAddress, given: GivenOptions, around: RemoteSurroundings): StoreTls {
  const name = TLS_OPTIONS.find((option) => given.isGiven(option));
  if (name !== undefined && !tls) {
    const message = `${given.sourceOf(name)} is for Redis over TLS, and needs --store rediss://, rediss+sentinel:// or rediss+cluster://.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  const [ca, cert, key] = TLS_OPTIONS.map((option) => readPem(option, given, around));
  if ((cert === undefined) !== (key === undefined)) {
    const message = '--store-client-cert and --store-client-key go together: a certificate and its private key.';
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  try {
    if (ca !== undefined) new X509Certificate(ca);
    createSecureContext({ ca, cert, key });
  } catch (cause) {
    const message =
      'The files of --store-ca, --store-client-cert and --store-client-key make no usable TLS configuration.';
    throw new BridgeError('ERR_CONFIG_OPTION', message, { cause });
  }
  return { ca, cert, key };
}

function readPem(
  name: (typeof TLS_OPTIONS)[number],
  given: GivenOptions,
  { cwd, readFile }: RemoteSurroundings,
): string | undefined {
  const place = given.optional(name, value.parseText);
  if (place === undefined) return undefined;
  const file = resolve(cwd, place);
  return tryToRead(given.sourceWith(name, file), () => readFile(file)).text;
}

function parseOrigin(text: string): value.Parsed<URL> {
  const parsed = value.parseBaseUrl(text);
  if (parsed.ok && parsed.value.pathname === '/') return parsed;
  return { ok: false, expected: 'an http or https URL without path, like http://10.0.0.5:8000' };
}

interface KeySource {
  readonly kind: 'env' | 'file';
  readonly place: string;
}

export function parseKeySource(text: string): value.Parsed<KeySource> {
  const [, kind, place = ''] = /^(env|file):(.+)$/s.exec(text) ?? [];
  if (kind === 'file') return { ok: true, value: { kind, place } };
  if (kind === 'env' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(place)) return { ok: true, value: { kind, place } };
  const expected =
    'where the key is found, like env:CLUSTER_KEY or file:/run/secrets/cluster-key (not the key itself: other users can read command lines)';
  return { ok: false, expected };
}

function parsePrefix(text: string): value.Parsed<string> {
  if (/^[\x21-\x7a|~]{1,100}$/.test(text)) return { ok: true, value: text };
  return { ok: false, expected: 'at most 100 visible characters of ASCII without braces' };
}

function parseLease(text: string): value.Parsed<number> {
  const parsed = value.parsePositiveDuration(text);
  if (parsed.ok && parsed.value >= MIN_LEASE_MS) return parsed;
  return { ok: false, expected: 'a duration of at least 1s, like 15s' };
}

/**
 * Minimum length of a key in characters, as the user writes it. 32 base64 or hexadecimal digits have at least 128 bits.
 */
const MIN_KEY_LENGTH = 32;

/** Reads the keys. A key that cannot be used is an error at startup, not at the first request. */
function findKeys(
  { kind, place }: KeySource,
  given: GivenOptions,
  { env, cwd, readFile }: RemoteSurroundings,
): ClusterConfig['keys'] {
  const source = given.sourceOf('cluster-key');
  const file = resolve(cwd, place);
  if (kind === 'env' && !env[place]) {
    const message = `${source}: expected a key in the variable ${place}; got nothing. Set it, or correct its name.`;
    throw new BridgeError('ERR_CONFIG_OPTION', message);
  }
  const text =
    kind === 'env' ? (env[place] ?? '') : tryToRead(given.sourceWith('cluster-key', file), () => readFile(file)).text;
  return splitKeys(text, source);
}

/**
 * @param text one key per line, or several separated by commas
 *
 * @throws BridgeError ERR_CONFIG_OPTION, which does not repeat the key
 */
function splitKeys(text: string, source: string): ClusterConfig['keys'] {
  const [first, ...others] = text.split(/[\s,]+/).filter((key) => key !== '');
  if (first === undefined) throw new BridgeError('ERR_CONFIG_OPTION', `${source}: expected a key; got nothing.`);
  if ([first, ...others].every((key) => key.length >= MIN_KEY_LENGTH)) return [first, ...others];
  const message = `${source}: expected keys of at least ${MIN_KEY_LENGTH} characters, such as openssl rand -base64 32 prints; one is shorter.`;
  throw new BridgeError('ERR_CONFIG_OPTION', message);
}

function warnOfLoopback(given: GivenOptions): string {
  return `${given.sourceOf('advertise')} is an address of this machine alone: replicas on other machines cannot reach this one there.`;
}
