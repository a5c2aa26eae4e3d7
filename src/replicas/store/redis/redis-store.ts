import { createHash, randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { StoreAddress, StoreTls } from '../../../config/cluster.ts';
import { BridgeError } from '../../../errors.ts';
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
  /** Precedes each key. */
  readonly prefix: string;
  readonly key: ClusterKey;
  readonly log: Logger;
}

/** A replica's death must be known for as long as a client may ask for one of its sessions. */
const KEPT_LEASE_MS = 24 * 3_600_000;

/** Resolves when Redis has responded for the first time; rejects with ERR_STORE_UNAVAILABLE if it does not. */
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
    onAvailable: (run) => connection.onAvailable(run),
    close: () => Promise.resolve(connection.close()),
  };
}

/**
 * Warns if Redis may evict keys. Some providers do not reveal their policy, so the documentation has the same advice.
 */
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
    const since = expectReply(outcome, isNumber, 'a number');
    return since === 0 ? { kind: 'dead' } : { kind: 'renewed', since };
  }

  async read(holder: string): Promise<LeaseReading> {
    const mark = randomBytes(9).toString('base64url');
    const outcome = await this.#connection.run(READ_LEASE, this.#prefix + holder, mark, KEPT_LEASE_MS);
    const kept = expectReply(outcome, isText, 'a text');
    return kept === DEAD ? { kind: 'dead' } : { kind: 'sign', sign: kept };
  }

  async condemn(holder: string, seen: LeaseReading): Promise<'dead' | 'alive'> {
    if (seen.kind === 'dead') return 'dead';
    const outcome = await this.#connection.run(CONDEMN_LEASE, this.#prefix + holder, seen.sign, KEPT_LEASE_MS);
    return isDone(outcome) ? 'dead' : 'alive';
  }

  async release(holder: string): Promise<void> {
    await this.#connection.ask((redis) => redis.set(this.#prefix + holder, DEAD, 'PX', KEPT_LEASE_MS));
  }
}

/** The value that the scripts store for a dead holder. */
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
    const fields = await this.#connection.ask((redis) => redis.hmgetBuffer(key, 'o', 't', 'v'));
    const [owner, token, sealed] = expectReply(fields, areFields, 'the fields of a record');
    if (!owner || !token || !sealed) return undefined;
    const value = this.#key.open(sealed, key);
    if (value === undefined) throw UNREADABLE;
    const count = expectReply(Number(token.toString()), isNumber, 'the number of an owner');
    return { owner: owner.toString(), token: count, value: value.toString() };
  }

  async put(name: string, { expected, next, ttlMs }: RecordWrite): Promise<boolean> {
    const key = keyOf(this.#prefix, name);
    const [owner, token] = expected === 'absent' ? ['', ''] : [expected.owner, expected.token];
    const sealed = this.#key.seal(Buffer.from(next.value), key);
    const args = [owner, token, next.owner, next.token, sealed, Math.ceil(ttlMs)] as const;
    return isDone(await this.#connection.run(PUT_RECORD, key, ...args));
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
    return expectReply(entries, areEntries, 'the entries of a stream').map(([, fields]) => {
      const entry = this.#key.open(fields[1], key);
      if (entry === undefined) throw UNREADABLE;
      return entry;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#connection.ask((redis) => redis.del(keyOf(this.#prefix, name)));
  }
}

// ---- Replies of Redis

/** Throws for a reply of another type: the server may not be Redis, or an intermediary may have changed the reply. */
function expectReply<Reply>(reply: unknown, isExpected: (reply: unknown) => reply is Reply, expected: string): Reply {
  if (isExpected(reply)) return reply;
  throw new BridgeError(
    'ERR_STORE_UNREADABLE',
    `The store has answered a command with something that Redis never answers: expected ${expected}. Check that --store leads to a Redis, and what stands between.`,
  );
}

/** Returns true if a script has changed the value as requested. */
function isDone(outcome: unknown): boolean {
  return expectReply(outcome, isFlag, '0 or 1') === 1;
}

function isFlag(reply: unknown): reply is 0 | 1 {
  return reply === 0 || reply === 1;
}

function isNumber(reply: unknown): reply is number {
  return Number.isSafeInteger(reply);
}

function isText(reply: unknown): reply is string {
  return typeof reply === 'string';
}

type RecordFields = readonly [owner: Buffer | null, token: Buffer | null, sealed: Buffer | null];

function areFields(reply: unknown): reply is RecordFields {
  return Array.isArray(reply) && reply.length === 3 && reply.every((field) => field === null || Buffer.isBuffer(field));
}

type StreamEntry = readonly [id: Buffer, fields: readonly [name: Buffer, sealed: Buffer]];

function areEntries(reply: unknown): reply is readonly StreamEntry[] {
  return Array.isArray(reply) && reply.every(isEntry);
}

function isEntry(entry: unknown): entry is StreamEntry {
  const fields: unknown = Array.isArray(entry) ? entry[1] : undefined;
  return Array.isArray(fields) && Buffer.isBuffer(fields[1]);
}

/** Hashes the name, because names may identify a user and must not be stored. */
function keyOf(prefix: string, name: string): string {
  return prefix + createHash('sha256').update(name).digest().subarray(0, 18).toString('base64url');
}

const UNREADABLE = new BridgeError(
  'ERR_STORE_UNREADABLE',
  'The store holds something that none of the keys of this replica opens: it was sealed with another --cluster-key, or changed.',
);
