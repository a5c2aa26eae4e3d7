import { createHash } from 'node:crypto';
import type { Script } from './connection.ts';

/** Scripts for steps that must be atomic. Each uses a single key, so that they also work in a Redis Cluster. */

/**
 * KEYS lease · ARGV sign, lifetime in ms. Returns 0 if the holder is dead; otherwise the sign that the lease began
 * with. A delayed renewal does not replace a later one. The mark left by another replica's read is no sign: the lease
 * begins again with this one.
 */
export const RENEW_LEASE = toScript(`
local kept = redis.call('GET', KEYS[1])
if kept == 'dead' then return 0 end
local first, latest = string.match(kept or '', '^(%d+)%.(%d+)$')
if not first or tonumber(latest) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], (first or ARGV[1]) .. '.' .. ARGV[1], 'PX', ARGV[2])
end
return tonumber(first or ARGV[1])`);

/**
 * KEYS lease · ARGV mark, lifetime in ms. Returns the lease. If there is none, the reader's mark is stored in its
 * place.
 */
export const READ_LEASE = toScript(`
local kept = redis.call('GET', KEYS[1])
if kept then return kept end
kept = '0.0.' .. ARGV[1]
redis.call('SET', KEYS[1], kept, 'PX', ARGV[2])
return kept`);

/** KEYS lease · ARGV the lease as read, lifetime of the verdict in ms. Returns 1 if the holder is dead. */
export const CONDEMN_LEASE = toScript(`
local kept = redis.call('GET', KEYS[1])
if kept == 'dead' then return 1 end
if kept ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'dead', 'PX', ARGV[2])
return 1`);

/**
 * KEYS record · ARGV expected owner ('' for none), expected token, owner, token, value, lifetime in ms. Returns 0 if
 * the record has another owner.
 */
export const PUT_RECORD = toScript(`
local owner = redis.call('HGET', KEYS[1], 'o')
if ARGV[1] == '' then
  if owner then return 0 end
elseif owner ~= ARGV[1] or redis.call('HGET', KEYS[1], 't') ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'o', ARGV[3], 't', ARGV[4], 'v', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1`);

/** KEYS record · ARGV expected owner, expected token. */
export const REMOVE_RECORD = toScript(`
if redis.call('HGET', KEYS[1], 'o') == ARGV[1] and redis.call('HGET', KEYS[1], 't') == ARGV[2] then
  return redis.call('DEL', KEYS[1])
end
return 0`);

/** KEYS log · ARGV maximum of entries, lifetime in ms, entries. */
export const APPEND_LOG = toScript(`
for index = 3, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'e', ARGV[index])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

function toScript(lua: string): Script {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}
