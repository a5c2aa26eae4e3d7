/**
 * The envelope of a modern request: the keys of `params._meta` that repeat in each request what a legacy client
 * declares once, in its handshake. [spec 2026-07-28 basic#meta]
 */
import { editFrame, type Frame, withoutParams, withParams } from '../../wire/frame.ts';
import { BACKSLASH, CLOSE_BRACKET, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable, type Unmistakable, visitMembers } from '../../wire/json/outline.ts';
import { findText, type Span, skipWhitespace } from '../../wire/json/scan-json.ts';
import { parseLogLevel } from '../vocabulary/client-declarations.ts';
import {
  META,
  META_CLIENT_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_PROTOCOL_VERSION,
} from '../vocabulary/meta.ts';
import {
  CALL_TOOL,
  LIST_PROMPTS,
  LIST_RESOURCE_TEMPLATES,
  LIST_RESOURCES,
  LIST_ROOTS,
  LIST_TOOLS,
  PING,
} from '../vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, MAX_PARSED_VALUES, parseSpan } from '../vocabulary/payload.ts';

export interface RequestMetadata {
  /** The revision as the client named it; not checked. */
  readonly revision: string;
  readonly capabilities: Fields;
  /**
   * Length of the capabilities' JSON text. Present only for large metadata, whose objects are parsed again at each
   * access.
   */
  readonly capabilitiesBytes?: number;
  /** An object with at least the strings `name` and `version`. */
  readonly clientInfo: Fields | undefined;
  /** A valid log level; undefined if the client wants no log messages. */
  readonly logLevel: string | undefined;
}

export interface MetadataFault {
  /** The missing or invalid member in English, without quoting the message. */
  readonly fault: string;
}

const ENVELOPE_KEYS = [META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL] as const;

/**
 * Reads the envelope of a request. A key that occurs twice, or next to a key that some parsers take for it, is
 * rejected: the server must read the same value that was checked here.
 */
export function readRequestMetadata(frame: Frame): RequestMetadata | MetadataFault {
  const { bytes, payloadStart } = frame;
  const meta = findUnmistakable(frame, payloadStart, META);
  if (meta === 'unclear') return { fault: `params.${META} must occur once, and nothing that could be taken for it` };
  const at = meta !== undefined && bytes[meta.start] === OPEN_BRACE ? meta.start : -1;
  const found = findAllUnmistakable(frame, at, ENVELOPE_KEYS);
  const revision = readValue(bytes, found[0]);
  const capabilities = readValue(bytes, found[1]);
  const clientInfo = readValue(bytes, found[2]);
  const logLevel = readValue(bytes, found[3]);
  if (typeof revision.value !== 'string') return faultOf(META_PROTOCOL_VERSION, revision, 'a string');
  const declared = asFields(capabilities.value);
  if (declared === undefined) return faultOf(META_CLIENT_CAPABILITIES, capabilities, 'an object');
  const info = parseInfo(clientInfo.value);
  if (info === undefined && clientInfo.state !== 'missing') {
    return faultOf(META_CLIENT_INFO, clientInfo, 'an object with the strings "name" and "version"');
  }
  const level = parseLogLevel(logLevel.value);
  if (level === undefined && logLevel.state !== 'missing') return faultOf(META_LOG_LEVEL, logLevel, 'a log level');
  const metadata = { revision: revision.value, capabilities: declared, clientInfo: info, logLevel: level };
  return lengthOf(found[1]) + lengthOf(found[2]) <= MAX_PARSED_BYTES ? metadata : parsedLate(metadata, bytes, found);
}

/**
 * Limit for metadata kept in parsed form. It is kept as long as its call, and objects may take twenty times the memory
 * of their text.
 */
const MAX_PARSED_BYTES = 2048;

function lengthOf(found: Unmistakable): number {
  return found === undefined || found === 'unclear' ? 0 : found.end - found.start;
}

/** The metadata as an object that parses its large members anew whenever they are read. */
function parsedLate(
  { revision, logLevel }: RequestMetadata,
  bytes: Buffer,
  [, capabilities, clientInfo]: readonly Unmistakable[],
): RequestMetadata {
  return {
    revision,
    logLevel,
    capabilitiesBytes: lengthOf(capabilities),
    get capabilities() {
      return asFields(readValue(bytes, capabilities).value) ?? {};
    },
    get clientInfo() {
      return asFields(readValue(bytes, clientInfo).value);
    },
  };
}

interface ReadValue {
  readonly state: 'missing' | 'unclear' | 'too-much' | 'present';
  readonly value: unknown;
}

const MISSING: ReadValue = { state: 'missing', value: undefined };
const UNCLEAR: ReadValue = { state: 'unclear', value: undefined };
const TOO_MUCH: ReadValue = { state: 'too-much', value: undefined };

function readValue(bytes: Buffer, found: Unmistakable): ReadValue {
  if (found === undefined) return MISSING;
  if (found === 'unclear') return UNCLEAR;
  const value = parseSpan(bytes, found);
  // The bytes belong to a valid JSON message within the depth limit, so parsing fails only for too many values.
  return value === undefined ? TOO_MUCH : { state: 'present', value };
}

function faultOf(key: string, { state }: ReadValue, expected: string): MetadataFault {
  const name = `params.${META}["${key}"]`;
  if (state === 'missing') return { fault: `${name} is missing; expected ${expected}` };
  if (state === 'unclear') return { fault: `${name} must occur once, and nothing that could be taken for it` };
  if (state === 'too-much') return { fault: `${name} has more than ${MAX_PARSED_VALUES} values; expected ${expected}` };
  return { fault: `${name} must be ${expected}` };
}

function parseInfo(value: unknown): Fields | undefined {
  const info = asFields(value);
  return typeof info?.name === 'string' && typeof info.version === 'string' ? info : undefined;
}

export interface StripOptions {
  /**
   * `remove` drops `inputResponses` and `requestState`, which answer an `input_required` result of the bridge itself.
   * Default: `keep`.
   */
  readonly inputs?: 'keep' | 'remove';
  /** A further change of the params, and the keys of the members that it changes. */
  readonly also?: { readonly keys: readonly string[]; readonly change: (params: ObjectEditor) => void };
}

const STRIPPED = [META, 'inputResponses', 'requestState'];

/** Legacy requests whose params are optional. */
const paramless: ReadonlySet<string | undefined> = new Set([
  LIST_TOOLS,
  LIST_PROMPTS,
  LIST_RESOURCES,
  LIST_RESOURCE_TEMPLATES,
  LIST_ROOTS,
  PING,
]);

/** The request without its envelope, for a legacy server. All other bytes stay unchanged. */
export function stripMetadata(frame: Frame, { inputs = 'keep', also }: StripOptions = {}): Frame {
  const keys = also === undefined ? STRIPPED : [...STRIPPED, ...also.keys];
  const params = ObjectEditor.readIn(frame, frame.payloadStart, keys);
  if (params === undefined) return frame;
  if (inputs === 'remove') {
    params.remove('inputResponses');
    params.remove('requestState');
  }
  also?.change(params);
  const metaStart = params.value(META)?.start ?? -1;
  if (metaStart !== -1) stripMeta(frame, params, metaStart);
  const edits = params.edits();
  if (edits.length > 0 && params.isEmpty && paramless.has(frame.method)) return withoutParams(frame);
  return editFrame(frame, edits);
}

/** Removes a `_meta` that the envelope leaves empty; one that was empty before stays. */
function stripMeta(frame: Frame, params: ObjectEditor, metaStart: number): void {
  if (isEnvelopeOnly(frame, metaStart)) return params.remove(META);
  const meta = ObjectEditor.readIn(frame, metaStart, ENVELOPE_KEYS);
  for (const key of ENVELOPE_KEYS) meta?.remove(key);
  const edits = meta?.edits() ?? [];
  if (edits.length > 0) params.edit(META, edits);
}

/** Returns true if `_meta` holds keys of the envelope and nothing else, as in most requests. */
function isEnvelopeOnly({ bytes, outline }: Frame, metaStart: number): boolean {
  let count = 0;
  const end = visitMembers(bytes, metaStart, outline, (keyStart, keyEnd) => {
    count += 1;
    return findText(bytes, keyStart, keyEnd, ENVELOPE_KEYS) !== undefined;
  });
  return count > 0 && end !== -1;
}

/**
 * The request with this envelope in place of any other, for a modern server, and without the `task` of a tool call,
 * which belongs to the legacy era. Positional params cannot hold an envelope and stay unchanged; the server rejects
 * them.
 */
export function stampMetadata(frame: Frame, metadata: RequestMetadata): Frame {
  const { bytes, payloadStart } = frame;
  const params = ObjectEditor.readIn(frame, payloadStart, [META, 'task']);
  if (params === undefined) {
    // PHP writes an empty object as an empty array.
    const isFree = payloadStart === -1 || isEmptyArray(bytes, payloadStart);
    return isFree ? withParams(frame, encodeJson({ [META]: envelopeOf(metadata) })) : frame;
  }
  const envelope = envelopeOf(metadata);
  const meta = ObjectEditor.readIn(frame, params.value(META)?.start ?? -1, ENVELOPE_KEYS);
  if (meta === undefined) {
    params.set(META, encodeJson(envelope));
  } else {
    for (const key of ENVELOPE_KEYS) {
      if (envelope[key] === undefined) meta.remove(key);
      else meta.set(key, encodeJson(envelope[key]));
    }
    params.edit(META, meta.edits());
  }
  if (frame.method === CALL_TOOL) params.remove('task');
  return editFrame(frame, params.edits());
}

function isEmptyArray(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_BRACKET && bytes[skipWhitespace(bytes, at + 1)] === CLOSE_BRACKET;
}

function envelopeOf({ revision, capabilities, clientInfo, logLevel }: RequestMetadata): Fields {
  return {
    [META_PROTOCOL_VERSION]: revision,
    [META_CLIENT_CAPABILITIES]: capabilities,
    [META_CLIENT_INFO]: clientInfo,
    [META_LOG_LEVEL]: logLevel,
  };
}

/** Envelopes remembered at a time, because more clients rarely call at once. The oldest is replaced first. */
const MAX_KNOWN = 8;
/** Limit for a remembered envelope. Usual envelopes are smaller. */
const MAX_BYTES = 2048;
/** Limit for the value that differs in each request. Usual progress tokens and trace contexts are shorter. */
const MAX_VARIABLE_BYTES = 128;

/**
 * A client's `_meta`: the same bytes in each request, except the value of at most one member. `head` precedes that
 * value and `tail` follows it; `tail` is undefined if no value differs.
 */
interface Known {
  readonly head: Buffer;
  readonly tail: Buffer | undefined;
  readonly metadata: RequestMetadata;
}

/**
 * Reads the metadata of several clients' requests. A client sends the same envelope with every request, byte for byte,
 * so the metadata parsed once is reused. Beside the envelope there may be one member with a different value in each
 * request, such as a progress token.
 */
export class MetadataReader {
  readonly #known: Known[] = [];
  #oldest = 0;

  /** Returns the same as `readRequestMetadata(frame)`. */
  read(frame: Frame): RequestMetadata | MetadataFault {
    const meta = findUnmistakable(frame, frame.payloadStart, META);
    if (meta === undefined || meta === 'unclear') return readRequestMetadata(frame);
    for (const known of this.#known) if (isLike(frame.bytes, meta, known)) return known.metadata;
    const metadata = readRequestMetadata(frame);
    if (!('fault' in metadata)) this.#learn(frame, meta, metadata);
    return metadata;
  }

  #learn(frame: Frame, { start, end }: Span, metadata: RequestMetadata): void {
    if (end - start > MAX_BYTES) return;
    const others = findOthers(frame, start);
    if (others.length > 1) return;
    const [variable = { start: end, end }] = others;
    const { bytes } = frame;
    this.#known[this.#oldest] = {
      head: Buffer.from(bytes.subarray(start, variable.start)),
      tail: others.length === 0 ? undefined : Buffer.from(bytes.subarray(variable.end, end)),
      metadata,
    };
    this.#oldest = (this.#oldest + 1) % MAX_KNOWN;
  }
}

/** The values in `_meta` that do not belong to the envelope. The search ends after two. */
function findOthers({ bytes, outline }: Frame, metaStart: number): readonly Span[] {
  const others: Span[] = [];
  visitMembers(bytes, metaStart, outline, (keyStart, keyEnd, start, end) => {
    if (findText(bytes, keyStart, keyEnd, ENVELOPE_KEYS) === undefined) others.push({ start, end });
    return others.length < 2;
  });
  return others;
}

function isLike(bytes: Buffer, { start, end }: Span, { head, tail }: Known): boolean {
  const headEnd = start + head.length;
  const tailStart = tail === undefined ? end : end - tail.length;
  if (tail === undefined ? headEnd !== end : headEnd >= tailStart) return false;
  if (bytes.compare(head, 0, head.length, start, headEnd) !== 0) return false;
  if (tail === undefined) return true;
  return isPlainValue(bytes, headEnd, tailStart) && bytes.compare(tail, 0, tail.length, tailStart, end) === 0;
}

/**
 * Returns true if these bytes of a valid JSON message are certainly a single value: a string without escapes, or a
 * number, boolean or null. Other single values return false, because checking them would need a parser.
 */
function isPlainValue(bytes: Buffer, start: number, end: number): boolean {
  if (end - start > MAX_VARIABLE_BYTES) return false;
  const isString = bytes[start] === QUOTE;
  if (isString && (end - start < 2 || bytes[end - 1] !== QUOTE)) return false;
  for (let at = isString ? start + 1 : start; at < (isString ? end - 1 : end); at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE || byte === BACKSLASH) return false;
    if (!isString && !isScalarByte(byte as number)) return false;
  }
  return true;
}

/** Returns true for the digits, letters and signs that numbers, `true`, `false` and `null` consist of. */
function isScalarByte(byte: number): boolean {
  return byte > SPACE && byte < 0x80 && !STRUCTURE.has(byte);
}

const STRUCTURE: ReadonlySet<number> = new Set(Buffer.from('{}[]:,'));
