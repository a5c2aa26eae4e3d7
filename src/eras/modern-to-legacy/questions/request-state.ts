import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../../deps.ts';
import { MAX_STATE_LENGTH } from '../../../mcp/classify/input-responses.ts';
import { asFields, type Fields, MAX_PARSED_VALUES, parseSpan } from '../../../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../../wire/frame.ts';
import { visitMembers } from '../../../wire/json/outline.ts';
import { countValues, decodeString, type Span } from '../../../wire/json/scan-json.ts';

/** Which call a retry continues. */
export interface StateContents {
  readonly callId: string;
  /** The number of times that the client had been asked when it got this state. */
  readonly round: number;
  /** The end of its validity, by the clock of the bridge. */
  readonly expiresAtMs: number;
}

/**
 * A state is valid for the same caller and the same request only. The caller is part of the seal, so with the state of
 * another caller a client gets the same error as with any text that was never a state.
 */
export interface StateBinding {
  readonly principal: string;
  readonly digest: string;
}

/**
 * - `state_invalid`: none of this caller's, or changed on the way.
 * - `state_expired`: the client took too long.
 * - `state_mismatch`: of another request.
 * - `state_lost`: the call it continues is gone, with its session or with the process that sealed the state.
 * - `state_given_up`: the call it continues is over, and its outcome was too large to keep.
 */
export type StateFault = 'state_invalid' | 'state_expired' | 'state_mismatch' | 'state_lost' | 'state_given_up';

/**
 * - `opened`: this caller got it here, for this request.
 * - `foreign`: it seems to be of another process, whose key is not known here, so what it says may be untrue.
 * - `refused`.
 */
export type OpenedState =
  | ({ readonly kind: 'opened' } & StateContents)
  | ({ readonly kind: 'foreign' } & Pick<StateContents, 'callId' | 'round'>)
  | { readonly kind: 'refused'; readonly fault: StateFault };

/**
 * Seals and opens the `requestState` of an `input_required`. It passes through the client, so nothing in it is believed
 * before its seal was checked. It holds no arguments, only digests.
 * [spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow]
 */
export class RequestStates {
  readonly #clock: Clock;
  readonly #key: Buffer;
  /** Tells a state of another process, whose key is not known here, from one that was changed. */
  readonly #instance: string;

  constructor(clock: Clock, key: Buffer = randomBytes(32)) {
    this.#clock = clock;
    this.#key = key;
    this.#instance = digestOf('instance', key);
  }

  seal({ callId, round, expiresAtMs }: StateContents, { principal, digest }: StateBinding): string {
    const fields = {
      i: this.#instance,
      c: callId,
      r: round,
      e: expiresAtMs,
      d: digest,
    };
    const payload = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `${payload}.${this.#sign(payload, principal).toString('base64url')}`;
  }

  open(state: unknown, { principal, digest }: StateBinding): OpenedState {
    if (typeof state !== 'string' || state.length > MAX_STATE_LENGTH) return INVALID;
    const dot = state.indexOf('.');
    const payload = state.slice(0, Math.max(0, dot));
    const fields = parse(payload);
    if (fields === undefined) return INVALID;
    if (!isEqual(this.#sign(payload, principal), state.slice(dot + 1))) return this.#openForeign(fields);
    const { c: callId, r: round, e: expiresAtMs } = fields as { c: string; r: number; e: number }; // sealed by us
    if (expiresAtMs <= this.#clock.now()) return { kind: 'refused', fault: 'state_expired' };
    if (fields.d !== digest) return { kind: 'refused', fault: 'state_mismatch' };
    return { kind: 'opened', callId, round, expiresAtMs };
  }

  #openForeign({ i: instance, c: callId, r: round }: Fields): OpenedState {
    if (!isForeign(instance, this.#instance)) return INVALID;
    if (typeof callId !== 'string' || typeof round !== 'number') return { kind: 'refused', fault: 'state_lost' };
    return { kind: 'foreign', callId, round };
  }

  /** The payload is base64url, so no two pairs come to the same text. */
  #sign(payload: string, principal: string): Buffer {
    return createHmac('sha256', this.#key).update(payload).update('.').update(principal).digest();
  }
}

const INVALID: OpenedState = { kind: 'refused', fault: 'state_invalid' };

function isEqual(expected: Buffer, seal: string): boolean {
  const given = Buffer.from(seal, 'base64url');
  // Decoding forgives what encoding never writes; one state has one spelling.
  return given.length === expected.length && timingSafeEqual(given, expected) && given.toString('base64url') === seal;
}

function isForeign(instance: unknown, own: string): boolean {
  return typeof instance === 'string' && instance.length === own.length && instance !== own;
}

function parse(payload: string): Fields | undefined {
  try {
    return asFields(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
  } catch {
    return undefined;
  }
}

const MESSAGES: Readonly<Record<StateFault, string>> = {
  state_invalid:
    'This requestState was not given to this caller here, or was changed; send the request without it to start anew.',
  state_expired:
    'The time to answer has passed and the call was given up; send the request without requestState to start anew.',
  state_mismatch: 'This requestState belongs to a request with another method or other params.',
  state_lost: 'The call that this requestState continues is gone; it was not run again.',
  state_given_up:
    'The call that this requestState continues is over, and its outcome was given up: more was kept for clients that come back than --max-parked-bytes allows. It was not run again.',
};

export function stateError(fault: StateFault): RpcError {
  return { code: INVALID_PARAMS, message: MESSAGES[fault], data: { bridge: { reason: fault } } };
}

const PER_ATTEMPT: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);

/**
 * Returns a digest of what makes two requests the same: the method and the params, without what belongs to one attempt.
 * Two requests that differ only beyond the precision of a double are taken for the same, which decides nothing, because
 * the params of a retry are never sent on. Params with too many values to be parsed must be spelled alike, as those of
 * one client are.
 */
export function requestDigest({ bytes, method = '', payloadStart, outline }: Frame): string {
  const salient = new Map<string, Span>();
  visitMembers(bytes, payloadStart, outline, (keyStart, keyEnd, start, end) => {
    const key = decodeString(bytes, keyStart, keyEnd);
    if (key !== undefined && !PER_ATTEMPT.has(key)) salient.set(key, { start, end });
    return true;
  });
  const spans = [...salient.values()];
  const count = spans.reduce(
    (sum, { start, end }) => sum + countValues(bytes.subarray(start, end), MAX_PARSED_VALUES),
    0,
  );
  if (count <= MAX_PARSED_VALUES) {
    const values = [...salient].map(([key, span]) => [key, parseSpan(bytes, span)] as const);
    return digestOf(method, JSON.stringify(Object.fromEntries(values), sortMembers));
  }
  const hash = createHash('sha256');
  for (const [key, { start, end }] of [...salient].sort(byKey)) {
    hash.update(`${JSON.stringify(key)} ${end - start} `).update(bytes.subarray(start, end));
  }
  return digestOf(method, hash.digest());
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function sortMembers(_key: string, value: unknown): unknown {
  const fields = asFields(value);
  if (fields === undefined) return value;
  return Object.fromEntries(Object.entries(fields).sort(byKey));
}

/** 22 characters. `purpose` keeps digests of different things apart. */
function digestOf(purpose: string, value: string | Buffer): string {
  return createHash('sha256').update(purpose).update('\0').update(value).digest().subarray(0, 16).toString('base64url');
}
