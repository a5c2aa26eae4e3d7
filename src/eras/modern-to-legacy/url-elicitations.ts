/** `-32042` of 2025-11-25: a call that wants its user to visit a URL first. The modern era asks instead of failing. */

import { toModernResult } from '../../mcp/translate/results.ts';
import { isDeclared } from '../../mcp/vocabulary/client-capabilities.ts';
import { CALL_TOOL, ELICIT } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR, MISSING_CAPABILITY } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/find-member.ts';
import { isStringToken } from '../../wire/json/scan-json.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';

/** How often one call may be refused for it. */
export const MAX_URL_ROUNDS = 10;
/** How long a call waits until the server says that the visit has had its effect. Many servers never say so. */
export const COMPLETION_MS = 20_000;

/** Characters of an id that is waited for; the completion of a longer one is not. */
export const MAX_AWAITED_ID_LENGTH = 1024;

export interface UrlElicitation {
  /** Undefined: there is none to wait for. */
  readonly elicitationId: string | undefined;
  /** `{"method":"elicitation/create","params":…}` */
  readonly request: Buffer;
}

/** What the error asks for. Undefined: nothing that could be shown to a user. */
export function readUrlElicitations({ data }: RpcError): readonly UrlElicitation[] | undefined {
  const listed = asFields(data)?.elicitations;
  if (!Array.isArray(listed) || listed.length === 0) return undefined;
  const elicitations = listed.map(readUrlElicitation);
  return elicitations.every((elicitation) => elicitation !== undefined) ? elicitations : undefined;
}

function readUrlElicitation(item: unknown): UrlElicitation | undefined {
  const fields = asFields(item);
  if (fields === undefined || typeof fields.url !== 'string') return undefined;
  const { elicitationId, mode: _, ...params } = fields;
  const request = { method: ELICIT, params: { mode: 'url', ...params } };
  return {
    elicitationId: isAwaited(elicitationId) ? elicitationId : undefined,
    request: Buffer.from(JSON.stringify(request)),
  };
}

function isAwaited(elicitationId: unknown): elicitationId is string {
  return typeof elicitationId === 'string' && elicitationId.length <= MAX_AWAITED_ID_LENGTH;
}

export function takesUrls(capabilities: Fields): boolean {
  return isDeclared(asFields(capabilities.elicitation)?.url);
}

/** [spec 2026-07-28 schema#missingrequiredclientcapabilityerror] */
export const URL_MODE_MISSING: RpcError = {
  code: MISSING_CAPABILITY,
  message: 'the server needs its user to visit a URL first, and the client did not declare elicitation.url',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};

export function isAccept(response: Buffer): boolean {
  const action = findMember(response, 0, 'action');
  return action !== undefined && isStringToken(response, action.start, action.end, 'accept');
}

/** The user did not agree, so that the call was not made. A model can read why. */
export function declined(method: string, serverInfo: Fields | undefined): Frame {
  const message = 'The server needs its user to visit a URL first, and the user did not agree.';
  if (method !== CALL_TOOL) return errorFrame(0, { code: INTERNAL_ERROR, message });
  const result = resultFrame(0, { content: [{ type: 'text', text: message }], isError: true });
  return toModernResult(result, { method, serverInfo }) ?? result;
}
