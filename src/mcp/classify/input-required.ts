/**
 * A modern server's result that requests input from the client, and the retry that carries the answers. [spec
 * 2026-07-28 basic/patterns/mrtr]
 */

import { isNullToken } from '../../wire/envelope-members.ts';
import { editFrame, type Frame } from '../../wire/frame.ts';
import { OPEN_BRACE, QUOTE } from '../../wire/json/ascii.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findMember, findUniqueMember } from '../../wire/json/outline.ts';
import { decodeString, isStringToken, MemberCursor, type Span } from '../../wire/json/scan-json.ts';
import { joinMembers } from '../../wire/write-message.ts';
import { type ClientCapabilities, isDeclared, missingCapability } from '../vocabulary/client-declarations.ts';
import { ELICIT, LIST_ROOTS, SAMPLE } from '../vocabulary/methods.ts';
import { asFields } from '../vocabulary/payload.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../vocabulary/rpc-codes.ts';
import type { RpcError } from '../vocabulary/rpc-errors.ts';

/**
 * A request for the client inside an `input_required` result. `params` is the JSON text of an object, a view of the
 * result's bytes.
 */
export interface InputRequest {
  readonly method: string;
  readonly params: Buffer | undefined;
}

/** Returns true for an elicitation in URL mode, false for one with a form and for other methods. */
export function isUrlMode({ method, params }: InputRequest): boolean {
  if (method !== ELICIT || params === undefined) return false;
  const mode = findUniqueMember(params, 0, 'mode');
  return typeof mode === 'object' && isStringToken(params, mode.start, mode.end, 'url');
}

export interface InputRequired {
  /** The input requests by the server's keys. */
  readonly requests: ReadonlyMap<string, InputRequest>;
  /** The token exactly as the server wrote it, to be sent back unchanged. It is opaque and may be secret. */
  readonly requestState: Buffer | undefined;
}

export interface InputFault {
  /** The protocol violation in English, without quoting the message. */
  readonly fault: string;
}

/**
 * `resultType` of a result, or `complete` if there is none. Undefined if it is not a string or occurs more than once.
 * [spec 2026-07-28 basic#resulttype]
 */
export function resultTypeOf({ bytes, payloadStart, outline }: Frame): string | undefined {
  const span = findUniqueMember(bytes, payloadStart, 'resultType', outline);
  if (span === undefined) return 'complete';
  if (span === 'duplicate' || bytes[span.start] !== QUOTE) return undefined;
  return decodeString(bytes, span.start, span.end);
}

/** Reads an `input_required` result. An input request that these capabilities do not allow is a fault. */
export function readInputRequired(frame: Frame, capabilities: ClientCapabilities): InputRequired | InputFault {
  const { bytes, payloadStart } = frame;
  const asked = findValue(bytes, payloadStart, 'inputRequests');
  const state = findValue(bytes, payloadStart, 'requestState');
  if (asked === 'duplicate' || state === 'duplicate') return { fault: 'inputRequests or requestState occurs twice' };
  if (state !== undefined && bytes[state.start] !== QUOTE) return { fault: 'requestState must be a string' };
  const requests = asked === undefined ? new Map<string, InputRequest>() : readRequests(bytes, asked, capabilities);
  if ('fault' in requests) return requests;
  if (requests.size === 0 && state === undefined) {
    return { fault: 'neither inputRequests nor requestState says what is required' };
  }
  // A copy: it is kept for longer than the message.
  return { requests, requestState: state && Buffer.from(bytes.subarray(state.start, state.end)) };
}

/** Limit of input requests in one result, far more than any client is asked at a time. */
const MAX_REQUESTS = 1000;

function readRequests(
  bytes: Buffer,
  { start }: Span,
  capabilities: ClientCapabilities,
): Map<string, InputRequest> | InputFault {
  if (bytes[start] !== OPEN_BRACE) return { fault: 'inputRequests must be an object' };
  const requests = new Map<string, InputRequest>();
  const members = new MemberCursor(bytes, start);
  while (members.next()) {
    if (requests.size === MAX_REQUESTS) return { fault: `inputRequests has more than ${MAX_REQUESTS} of them` };
    const key = decodeString(bytes, members.keyStart, members.keyEnd);
    if (key === undefined || requests.has(key)) return { fault: 'a key of inputRequests occurs twice' };
    const request = readRequest(bytes, members.valueStart);
    if ('fault' in request) return request;
    const refusal = refuseInput(capabilities, request.method, request.params);
    if (refusal !== undefined) return { fault: `an input request is not allowed: ${refusal.message}` };
    requests.set(key, request);
  }
  return requests;
}

function readRequest(bytes: Buffer, start: number): InputRequest | InputFault {
  const method = findValue(bytes, start, 'method');
  const params = findValue(bytes, start, 'params');
  const isText = method !== undefined && method !== 'duplicate' && bytes[method.start] === QUOTE;
  const name = isText ? decodeString(bytes, method.start, method.end) : undefined;
  if (name === undefined || !isInputMethod(name)) return { fault: 'an input request has a method that is none' };
  if (params === undefined) return { method: name, params: undefined };
  if (params === 'duplicate' || bytes[params.start] !== OPEN_BRACE) {
    return { fault: 'the params of an input request must be an object' };
  }
  return { method: name, params: bytes.subarray(params.start, params.end) };
}

/** Finds a member, and treats null as absent because some languages write missing members as null. */
function findValue(bytes: Buffer, objectStart: number, key: string): Span | 'duplicate' | undefined {
  const span = findUniqueMember(bytes, objectStart, key);
  if (span === undefined || span === 'duplicate') return span;
  return isNullToken(bytes, span.start, span.end) ? undefined : span;
}

export interface InputAnswers {
  /** JSON text of each answer of this round, by the server's key. */
  readonly responses: ReadonlyMap<string, Buffer>;
  /** The state as `readInputRequired` returned it. */
  readonly requestState: Buffer | undefined;
}

/** The original request with the client's answers. The caller gives it a new id. */
export function withInputAnswers(frame: Frame, { responses, requestState }: InputAnswers): Frame {
  const params = ObjectEditor.readIn(frame, frame.payloadStart, ['inputResponses', 'requestState']);
  if (params === undefined) throw new Error('a request without params cannot require input');
  if (responses.size > 0) params.set('inputResponses', joinMembers(responses));
  else params.remove('inputResponses');
  if (requestState !== undefined) params.set('requestState', requestState);
  else params.remove('requestState');
  return editFrame(frame, params.edits());
}

// ---- What a server may ask of a client. [spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow]

const inputs: ReadonlySet<string> = new Set([SAMPLE, ELICIT, LIST_ROOTS]);

/** A request that can travel inside of an `input_required` result. */
export function isInputMethod(method: string): boolean {
  return inputs.has(method);
}

/**
 * Returns the error for a request that the client must not see, or undefined if it may see it. `params` is JSON text;
 * only the few members that matter are read.
 */
export function refuseInput(
  capabilities: ClientCapabilities,
  method: string,
  params: Buffer | undefined,
): RpcError | undefined {
  if (!isInputMethod(method)) return { code: METHOD_NOT_FOUND, message: 'clients have no such method' };
  const mode = params && findUniqueMember(params, 0, 'mode');
  if (mode === 'duplicate') return { code: INVALID_PARAMS, message: 'mode occurs twice' };
  const missing = missingCapability(capabilities, method, { mode: mode && textAt(params, mode) });
  if (missing !== undefined) {
    // The method exists but its mode does not, so the params are invalid.
    const code = missing.includes('.') ? INVALID_PARAMS : METHOD_NOT_FOUND;
    return { code, message: `the client did not declare ${missing}` };
  }
  // [spec 2026-07-28 client/sampling#capabilities]
  const usesTools = method === SAMPLE && (has(params, 'tools') || has(params, 'toolChoice'));
  if (!usesTools || isDeclared(asFields(capabilities.sampling)?.tools)) return undefined;
  return { code: INVALID_PARAMS, message: 'the client did not declare sampling.tools' };
}

function textAt(bytes: Buffer, { start, end }: Span): string | undefined {
  return bytes[start] === QUOTE ? decodeString(bytes, start, end) : undefined;
}

function has(params: Buffer | undefined, key: string): boolean {
  return params !== undefined && findMember(params, 0, key) !== undefined;
}
