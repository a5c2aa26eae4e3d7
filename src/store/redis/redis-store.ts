import { createHash, randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { StoreAddress, StoreTls } from '../../config/cluster.ts';
import { BridgeError } from '../../errors.ts';
import type { ClusterKey } from '../cluster-key.ts';
import type {
  LeaseReading,
  LeaseStore,
  LogLimits,
  LogStore,
  Ownership,
  RecordStore,
  RecordWrite,
  Renewal,
  Store,
  StoredRecord,
  StoreStatus,
} from '../store.ts';
import { RedisConnection } from './connection.ts';
import { APPEND_LOG, CONDEMN_LEASE, PUT_RECORD, READ_LEASE, REMOVE_RECORD, RENEW_LEASE } from './scripts.ts';

export interface RedisStoreOptions {
  readonly address: StoreAddress;
  readonly tls: StoreTls;
  /** Before each key. */
  readonly prefix: string;
  readonly key: ClusterKey;
  readonly log: Logger;
}

/** That a replica is dead must be known for as long as anybody may ask for one of its sessions. */
const KEPT_LEASE_MS = 24 * 3_600_000;

/** Resolves when Redis has answered for the first time; rejects with ERR_STORE_UNAVAILABLE when it does not. */
export async function connectRedisStore({ address, tls, prefix, key, log }: RedisStoreOptions): Promise<Store> {
  const connection = await RedisConnection.connect(address, tls, log);
  await warnOfEviction(connection, log);
  return {
    leases: new RedisLeases(connection, `${prefix}lease:`),
    records: new RedisRecords(connection, `${prefix}record:`, key),
    logs: new RedisLogs(connection, `${prefix}log:`, key),
    get status(): StoreStatus {
      return connection.status;
    },
    close: () => Promise.resolve(connection.close()),
  };
}

/** Some providers do not tell; then the documentation has to. */
async function warnOfEviction(connection: RedisConnection, log: Logger): Promise<void> {
  const memory = await connection.ask((redis) => redis.info('memory')).catch(() => '');
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(memory) ?? [];
  if (policy === 'noeviction') return;
  log.warn(
    { policy },
    'Redis drops keys when its memory is full (maxmemory-policy), and with them sessions of this cluster; set it to noeviction',
  );
}

class RedisLeases implements LeaseStore {
  readonly #connection: RedisConnection;
  readonly #prefix: string;

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection;
    this.#prefix = prefix;
  }

  async renew(holder: string, sign: number): Promise<Renewal> {
    const outcome = await this.#connection.run(RENEW_LEASE, this.#prefix + holder, sign, KEPT_LEASE_MS);
    return outcome === 0 ? { kind: 'dead' } : { kind: 'renewed', since: Number(outcome) };
  }

  async read(holder: string): Promise<LeaseReading> {
    const mark = randomBytes(9).toString('base64url');
    const kept = String(await this.#connection.run(READ_LEASE, this.#prefix + holder, mark, KEPT_LEASE_MS));
    return kept === DEAD ? { kind: 'dead' } : { kind: 'sign', sign: kept };
  }

  async condemn(holder: string, seen: LeaseReading): Promise<'dead' | 'alive'> {
    if (seen.kind === 'dead') return 'dead';
    const outcome = await this.#connection.run(CONDEMN_LEASE, this.#prefix + holder, seen.sign, KEPT_LEASE_MS);
    return outcome === 1 ? 'dead' : 'alive';
  }

  async release(holder: string): Promise<void> {
    await this.#connection.ask((redis) => redis.set(this.#prefix + holder, DEAD, 'PX', KEPT_LEASE_MS));
  }
}

/** As the scripts write it. */
const DEAD = 'dead';

class RedisRecords implements RecordStore {
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  readonly #key: ClusterKey;

  constructor(connection: RedisConnection, prefix: string, key: ClusterKey) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#key = key;
  }

  async read(name: string): Promise<StoredRecord | undefined> {
    const key = keyOf(this.#prefix, name);
    const [owner, token, sealed] = await this.#connection.ask((redis) => redis.hmgetBuffer(key, 'o', 't', 'v'));
    if (!owner || !token || !sealed) return undefined;
    const value = this.#key.open(sealed, key);
    if (value === undefined) throw UNREADABLE;
    return { owner: owner.toString(), token: Number(token.toString()), value: value.toString() };
  }

  async put(name: string, { expected, next, ttlMs }: RecordWrite): Promise<boolean> {
    const key = keyOf(this.#prefix, name);
    const [owner, token] = expected === 'absent' ? ['', ''] : [expected.owner, expected.token];
    const sealed = this.#key.seal(Buffer.from(next.value), key);
    const args = [owner, token, next.owner, next.token, sealed, Math.ceil(ttlMs)] as const;
    return (await this.#connection.run(PUT_RECORD, key, ...args)) === 1;
  }

  async remove(name: string, { owner, token }: Ownership): Promise<void> {
    await this.#connection.run(REMOVE_RECORD, keyOf(this.#prefix, name), owner, token);
  }
}

class RedisLogs implements LogStore {
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  readonly #key: ClusterKey;

  constructor(connection: RedisConnection, prefix: string, key: ClusterKey) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#key = key;
  }

  async append(name: string, entries: readonly Buffer[], { maxEntries, ttlMs }: LogLimits): Promise<void> {
    const key = keyOf(this.#prefix, name);
    const sealed = entries.map((entry) => this.#key.seal(entry, key));
    await this.#connection.run(APPEND_LOG, key, maxEntries, Math.ceil(ttlMs), ...sealed);
  }

  async read(name: string): Promise<readonly Buffer[]> {
    const key = keyOf(this.#prefix, name);
    const entries = await this.#connection.ask((redis) => redis.xrangeBuffer(key, '-', '+'));
    return entries.map(([, fields]) => {
      const entry = fields[1] && this.#key.open(fields[1], key);
      if (entry === undefined) throw UNREADABLE;
      return entry;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#connection.ask((redis) => redis.del(keyOf(this.#prefix, name)));
  }
}

/** Names may say who somebody is, so that they are not stored. */
function keyOf(prefix: string, name: string): string {
  return prefix + createHash('sha256').update(name).digest().subarray(0, 18).toString('base64url');
}

const UNREADABLE = new BridgeError(
  'ERR_STORE_UNREADABLE',
  'The store holds something that none of the keys of this replica opens: it was sealed with another --cluster-key, or changed.',
);
