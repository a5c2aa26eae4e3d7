/** The members of the JSON-RPC envelope: how their keys and ids are recognized, and which kind of message they form. */

import { decodeId, decodeLooseId } from './decode-id.ts';
import type { Envelope, FrameKind, JsonRpcId } from './frame.ts';
import { BACKSLASH, QUOTE } from './json/ascii.ts';
import { fold } from './json/outline.ts';
import { decodeString, isStringToken } from './json/scan-json.ts';

/** Members with a short value, decoded as soon as they are found. */
export type SimpleKey = 'jsonrpc' | 'id' | 'method';
/** Members whose value belongs to the application and is not decoded. */
export type PayloadKey = 'params' | 'result' | 'error';
export type EnvelopeKey = SimpleKey | PayloadKey;

const ENVELOPE_KEYS: readonly EnvelopeKey[] = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'];

const LONGEST_KEY = 'jsonrpc'.length;
/**
 * Bytes of `jsonrpc` if each letter is a six-character escape, with quotes. No longer token can be a key of the
 * envelope.
 */
const LONGEST_TOKEN = 6 * LONGEST_KEY + 2;

/** Returns the envelope member that the key token bytes[start, end) names; undefined for any other key. */
export function classifyKey(bytes: Buffer, start: number, end: number): EnvelopeKey | undefined {
  const length = end - start - 2;
  const key = keyOfLength(bytes, start, length);
  if (key !== undefined && isPlainKey(bytes, start, key)) return key;
  if (!startsAsEscaped(bytes, start)) return undefined;
  return ENVELOPE_KEYS.find((known) => isStringToken(bytes, start, end, known));
}

/**
 * Returns true if an escape starts within the length of the longest key. A key that is not spelled plainly must have
 * one there.
 */
function startsAsEscaped(bytes: Buffer, start: number): boolean {
  for (let at = start + 1; at <= start + LONGEST_KEY; at++) {
    const byte = bytes[at];
    if (byte === BACKSLASH) return true;
    if (byte === undefined || byte === QUOTE) return false;
  }
  return false;
}

/** Returns the only envelope key that a plainly spelled token of this length can be. */
function keyOfLength(bytes: Buffer, start: number, length: number): EnvelopeKey | undefined {
  if (length === 2) return 'id';
  if (length === 7) return 'jsonrpc';
  if (length === 5) return 'error';
  if (length !== 6) return undefined;
  const initial = bytes[start + 1];
  if (initial === 0x6d) return 'method';
  return initial === 0x70 ? 'params' : 'result';
}

function isPlainKey(bytes: Buffer, start: number, key: EnvelopeKey): boolean {
  for (let index = 0; index < key.length; index++) {
    if (bytes[start + 1 + index] !== key.charCodeAt(index)) return false;
  }
  return true;
}

/**
 * Returns the envelope member that some servers would read from this key token although its case differs: Go's
 * encoding/json ignores case. Such a server would read another message than the one that was checked, so a client's
 * message must have no such member.
 */
export function findLookAlike(bytes: Buffer, start: number, end: number): EnvelopeKey | undefined {
  if (end - start > LONGEST_TOKEN) return undefined;
  const name = decodeString(bytes, start, end);
  const folded = name && fold(name);
  return ENVELOPE_KEYS.find((key) => key === folded);
}

export function isPayloadKey(key: EnvelopeKey): key is PayloadKey {
  return key === 'params' || key === 'result' || key === 'error';
}

export function isNullToken(bytes: Buffer, start: number, end: number): boolean {
  return end - start === 4 && bytes[start] === 0x6e;
}

export function isVersionToken(bytes: Buffer, start: number, end: number): boolean {
  return bytes[start] === QUOTE && isStringToken(bytes, start, end, '2.0');
}

/** Longer methods belong to no known protocol and are not remembered. */
const MAX_KEPT_METHOD = 64;

/** The envelope members found so far by a scan. */
export class EnvelopeDraft {
  /** `"jsonrpc":"2.0"` was seen. */
  versioned = false;
  id: JsonRpcId | undefined = undefined;
  idStart = -1;
  idEnd = -1;
  method: string | undefined = undefined;
  outcome: 'result' | 'error' | undefined = undefined;
  payloadStart = -1;
  /**
   * The method of an earlier message. Most messages repeat it, and comparing bytes costs less than creating a string.
   */
  #latestMethod = '';

  /** Clears the draft for the next message. */
  reset(): void {
    this.versioned = false;
    this.id = undefined;
    this.idStart = -1;
    this.idEnd = -1;
    this.method = undefined;
    this.outcome = undefined;
    this.payloadStart = -1;
  }

  takePayload(key: PayloadKey, valueStart: number): void {
    if (key !== 'params') this.outcome = key;
    this.payloadStart = valueStart;
  }

  /** Takes a simple member. Returns false if JSON-RPC does not allow its value. */
  takeSimple(key: SimpleKey, bytes: Buffer, start: number, end: number): boolean {
    if (key === 'jsonrpc') {
      this.versioned = isVersionToken(bytes, start, end);
      return this.versioned;
    }
    if (key === 'method') {
      this.method = bytes[start] === QUOTE ? this.#decodeMethod(bytes, start, end) : undefined;
      return this.method !== undefined;
    }
    const id = decodeId(bytes, start, end);
    if (id === undefined && !isNullToken(bytes, start, end)) return false;
    this.id = id;
    this.idStart = start;
    this.idEnd = end;
    return true;
  }

  /** Takes a server's id that `takeSimple` rejects. Returns false if it is no integer in any notation. */
  takeLooseId(bytes: Buffer, start: number, end: number): boolean {
    this.id = decodeLooseId(bytes, start, end);
    this.idStart = start;
    this.idEnd = end;
    return this.id !== undefined;
  }

  #decodeMethod(bytes: Buffer, start: number, end: number): string | undefined {
    if (isStringToken(bytes, start, end, this.#latestMethod)) return this.#latestMethod;
    const method = decodeString(bytes, start, end);
    if (method !== undefined && method.length <= MAX_KEPT_METHOD) this.#latestMethod = method;
    return method;
  }

  /** True if the rest of the message cannot change the result. */
  get isComplete(): boolean {
    return (
      this.versioned &&
      this.payloadStart !== -1 &&
      this.idStart !== -1 &&
      (this.outcome !== undefined || this.method !== undefined)
    );
  }

  /** Undefined if the members form no JSON-RPC message. */
  get kind(): FrameKind | undefined {
    if (!this.versioned) return undefined;
    // [spec JSON-RPC 2.0 §5] An error about a message whose id could not be read has no id, or null.
    if (this.outcome === 'error') return 'error';
    if (this.outcome === 'result') return this.id === undefined ? undefined : 'result';
    if (this.method === undefined) return undefined;
    if (this.idStart === -1) return 'notification';
    return this.id === undefined ? undefined : 'request';
  }

  toEnvelope(kind: FrameKind): Envelope {
    const { id, idStart, idEnd, method, payloadStart } = this;
    return { kind, id, idStart, idEnd, method, payloadStart };
  }
}
