/**
 * The envelope of a modern request: the keys of `params._meta` that say what a legacy client says once, in its
 * handshake. [spec 2026-07-28 basic#meta]
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
import { asFields, type Fields, MAX_PARSED_VALUES, parseSpan } from '../vocabulary/payload.ts';

export interface RequestMetadata {
  /** The revision as the client named it; not checked. */
  readonly revision: string;
  readonly capabilities: Fields;
  /** How the client wrote them, where that is much: then they are parsed anew at each look. */
  readonly capabilitiesBytes?: number;
  /** With `name` and `version`, and whatever else the client tells of itself. */
  readonly clientInfo: Fields | undefined;
  /** One of the eight levels. Undefined: the client wants no log messages. */
  readonly logLevel: string | undefined;
}

export interface MetadataFault {
  /** What is missing or wrong, in English, without quoting the message. */
  readonly fault: string;
}

const ENVELOPE_KEYS = [META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL] as const;

/**
 * The envelope of a request. A key that occurs twice, or beside one that some parsers take for it, is refused: what was
 * checked here must be what the server reads.
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

/** Metadata is kept as long as its call, and objects may take twenty times the memory of their text. */
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
  // It is part of a message that is JSON, and no deeper than a message may be.
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
  /** `inputResponses` and `requestState`, which answer an `input_required` of the bridge's own. Default: keep. */
  readonly inputs?: 'keep' | 'remove';
  /** What else changes in the params: members of these names. */
  readonly also?: { readonly keys: readonly string[]; readonly change: (params: ObjectEditor) => void };
}

const STRIPPED = [META, 'inputResponses', 'requestState'];

/** Legacy requests that may come without params. */
const paramless: ReadonlySet<string | undefined> = new Set([
  LIST_TOOLS,
  LIST_PROMPTS,
  LIST_RESOURCES,
  LIST_RESOURCE_TEMPLATES,
  LIST_ROOTS,
  PING,
]);

/** The request without its envelope, as a legacy server wants it. All else stays byte for byte. */
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

/** A `_meta` that is left empty goes; one that was empty before stays. */
function stripMeta(frame: Frame, params: ObjectEditor, metaStart: number): void {
  if (isEnvelopeOnly(frame, metaStart)) return params.remove(META);
  const meta = ObjectEditor.readIn(frame, metaStart, ENVELOPE_KEYS);
  for (const key of ENVELOPE_KEYS) meta?.remove(key);
  const edits = meta?.edits() ?? [];
  if (edits.length > 0) params.edit(META, edits);
}

/** Does it hold the envelope, or parts of it, and nothing else? Most do. */
function isEnvelopeOnly({ bytes, outline }: Frame, metaStart: number): boolean {
  let count = 0;
  const end = visitMembers(bytes, metaStart, outline, (keyStart, keyEnd) => {
    count += 1;
    return findText(bytes, keyStart, keyEnd, ENVELOPE_KEYS) !== undefined;
  });
  return count > 0 && end !== -1;
}

/**
 * The request with this envelope in place of any other, as a modern server wants it; without the `task` of a tool call,
 * which is of the legacy era. Params by position cannot have an envelope and stay, for the server to refuse.
 */
export function stampMetadata(frame: Frame, metadata: RequestMetadata): Frame {
  const { bytes, payloadStart } = frame;
  const params = ObjectEditor.readIn(frame, payloadStart, [META, 'task']);
  if (params === undefined) {
    // PHP writes an empty object as an empty array.
    const isFree = payloadStart === -1 || isEmptyArray(bytes, payloadStart);
    return isFree ? withParams(frame, encode({ [META]: envelopeOf(metadata) })) : frame;
  }
  const envelope = envelopeOf(metadata);
  const meta = ObjectEditor.readIn(frame, params.value(META)?.start ?? -1, ENVELOPE_KEYS);
  if (meta === undefined) {
    params.set(META, encode(envelope));
  } else {
    for (const key of ENVELOPE_KEYS) {
      if (envelope[key] === undefined) meta.remove(key);
      else meta.set(key, encode(envelope[key]));
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

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** No more clients are likely to call in the same moment; the one met first makes way. */
const MAX_KNOWN = 8;
/** No usual envelope is larger. */
const MAX_BYTES = 2048;
/** No usual progress token or trace context is longer. */
const MAX_VARIABLE_BYTES = 128;

/** How a client writes its `_meta`: the same bytes each time, except the value of one member, if there is one. */
interface Known {
  readonly head: Buffer;
  /** What follows that value; undefined: all of it is the head. */
  readonly tail: Buffer | undefined;
  readonly metadata: RequestMetadata;
}

/**
 * `readRequestMetadata` for the requests of some clients. Each sends the same envelope with every request, byte for byte,
 * so what was found in one holds for the next. Beside the envelope there may be one member whose value is another one in
 * each request, such as a progress token.
 */
export class MetadataReader {
  readonly #known: Known[] = [];
  #oldest = 0;

  /** Returns what `readRequestMetadata(frame)` would. */
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

/** The values beside the envelope; no more than two are looked for. */
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
 * Whether these bytes of a message that is JSON are one value and nothing else: a string without escapes, or what has no
 * structure, such as a number. Other values may be as well, but are not worth a parser.
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

/** Digits, letters and signs, of which numbers and `true`, `false` and `null` consist. */
function isScalarByte(byte: number): boolean {
  return byte > SPACE && byte < 0x80 && !STRUCTURE.has(byte);
}

const STRUCTURE: ReadonlySet<number> = new Set(Buffer.from('{}[]:,'));
