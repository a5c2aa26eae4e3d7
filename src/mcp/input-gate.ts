/** What a server may ask of a client. [spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow] */
import { QUOTE } from '../wire/ascii.ts';
import { findMember, findUniqueMember } from '../wire/find-member.ts';
import { decodeString, type Span } from '../wire/scan-json.ts';
import { type ClientCapabilities, isDeclared, missingCapability } from './client-capabilities.ts';
import { ELICIT, LIST_ROOTS, SAMPLE } from './methods.ts';
import { asFields } from './payload.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from './rpc-codes.ts';
import type { RpcError } from './rpc-errors.ts';

const inputs: ReadonlySet<string> = new Set([SAMPLE, ELICIT, LIST_ROOTS]);

/** A request that can travel inside of an `input_required` result. */
export function isInputMethod(method: string): boolean {
  return inputs.has(method);
}

/**
 * Why the client must not see this request; undefined: it may. `params` is JSON text; only the few members that matter
 * are read.
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
    // A method that is there in another mode is a method that is there.
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
