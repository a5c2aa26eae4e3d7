/** Parses the options of a replica: the shared store, its own address, the shared key and the lease. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ClusterConfig, StoreAddress, StoreTls } from '../../config/cluster.ts';
import { BridgeError } from '../../errors.ts';
import { isLoopback } from '../../http/addresses.ts';
import type { GivenOptions } from '../options/given-options.ts';
import type { OptionName } from '../options/option-table.ts';
import type { SecretSource } from './listener/auth-value.ts';
import { tryToRead } from './servers/headers.ts';
import type { RemoteSurroundings } from './servers/remote.ts';
import { parseRedisAddress } from './store-address.ts';

export interface ParsedCluster {
  readonly cluster: ClusterConfig | undefined;
  readonly warnings: readonly string[];
}

/** @throws BridgeError ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION */
export function parseCluster(given: GivenOptions, around: RemoteSurroundings): ParsedCluster {
  const store = given.get('store');
  if (store === undefined) {
    refuseWithoutStore(given);
    return { cluster: undefined, warnings: [] };
  }
  const advertise = given.get('advertise');
  const key = given.get('clusterKey');
  if (advertise === undefined)
    throw lacks(given, 'advertise', 'the address at which the other replicas reach this one');
  if (key === undefined) throw lacks(given, 'clusterKey', 'the secret that the replicas share');
  const address = parseRedisAddress(store, given.placeOf('store'));
  const cluster: ClusterConfig = {
    store: {
      address,
      tls: parseTls(address, given, around),
      prefix: given.get('storePrefix'),
    },
    advertise,
    keys: findKeys(key, given, around),
    leaseMs: given.get('lease'),
    limits: given.get('clusterLimits') ? 'of-all-replicas' : 'of-each-replica',
  };
  const isLocal = isLoopback(advertise.hostname.replace(/^\[|\]$/g, ''));
  return { cluster, warnings: isLocal ? [warnOfLoopback(given)] : [] };
}

function refuseWithoutStore(given: GivenOptions): void {
  const alone = ([...TLS_OPTIONS, 'advertise', 'clusterKey', 'storePrefix', 'lease', 'clusterLimits'] as const).find(
    (name) => given.isGiven(name),
  );
  if (alone === undefined) return;
  const message = `${given.placeOf(alone)} is for several replicas, and needs ${given.nameOf('store')}: what they share.`;
  throw new BridgeError('ERR_CONFIG_COMBINATION', message);
}

function lacks(given: GivenOptions, name: OptionName, what: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', `${given.placeOf('store')} needs ${given.nameOf(name)}: ${what}.`);
}

const TLS_OPTIONS = ['storeCa', 'storeClientCert', 'storeClientKey'] as const;

/**
 * Reads the files once. A certificate or key that cannot be used is an error at startup, not at the first connection.
 */
function parseTls({ tls }: StoreAddress, given: GivenOptions, around: RemoteSurroundings): StoreTls {
  const name = TLS_OPTIONS.find((option) => given.isGiven(option));
  if (name !== undefined && !tls) {
    const message = `${given.placeOf(name)} is for Redis over TLS, and needs ${given.nameOf('store')} rediss://, rediss+sentinel:// or rediss+cluster://.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  const [ca, cert, key] = TLS_OPTIONS.map((option) => readPem(option, given, around));
  if ((cert === undefined) !== (key === undefined)) {
    const message = `${given.nameOf('storeClientCert')} and ${given.nameOf('storeClientKey')} go together: a certificate and its private key.`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', message);
  }
  try {
    if (ca !== undefined) new X509Certificate(ca);
    createSecureContext({ ca, cert, key });
  } catch (cause) {
    const [ofCa, ofCert, ofKey] = TLS_OPTIONS.map((option) => given.nameOf(option));
    const message = `The files of ${ofCa}, ${ofCert} and ${ofKey} make no usable TLS configuration.`;
    throw new BridgeError('ERR_CONFIG_OPTION', message, { cause });
  }
  return { ca, cert, key };
}

function readPem(
  name: (typeof TLS_OPTIONS)[number],
  given: GivenOptions,
  { readFile }: RemoteSurroundings,
): string | undefined {
  const file = given.get(name);
  if (file === undefined) return undefined;
  return tryToRead(given.placeWith(name, file), () => readFile(file)).text;
}

/**
 * Minimum length of a key in characters, as the user writes it. 32 base64 or hexadecimal digits have at least 128 bits.
 */
const MIN_KEY_LENGTH = 32;

/** Reads the keys. A key that cannot be used is an error at startup, not at the first request. */
function findKeys(
  { kind, place }: SecretSource,
  given: GivenOptions,
  { env, readFile }: RemoteSurroundings,
): ClusterConfig['keys'] {
  const source = given.placeOf('clusterKey');
  if (kind === 'env' && !env[place]) {
    const message = `${source}: expected a key in the variable ${place}; got nothing. Set it, or correct its name.`;
    throw new BridgeError('ERR_CONFIG_OPTION', message);
  }
  const text =
    kind === 'env' ? (env[place] ?? '') : tryToRead(given.placeWith('clusterKey', place), () => readFile(place)).text;
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
  return `${given.placeOf('advertise')} is an address of this machine alone: replicas on other machines cannot reach this one there.`;
}
