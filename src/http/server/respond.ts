import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { BridgeError, ErrorCode } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { JSON_TYPE } from '../headers.ts';

const AS_IT_IS: OutgoingHttpHeaders = {
  // The response is for one caller and its session, which the URL that caches use as key does not contain. [RFC 9111
  // 4.2.2]
  'Cache-Control': 'no-store',
  // The response may repeat parts of the request, which browsers must not treat as a page.
  'X-Content-Type-Options': 'nosniff',
};

/** The error code of a rejected request, stored as a property of the response for metrics. */
const REFUSAL = Symbol('refusal');

type RefusedResponse = ServerResponse & { [REFUSAL]?: ErrorCode };

/** Notes on the response that its request was refused, so that the refusal is counted. */
export function noteRefusal(response: ServerResponse, code: ErrorCode): void {
  (response as RefusedResponse)[REFUSAL] = code;
}

/** Returns undefined if the request was not refused. */
export function refusalOf(response: ServerResponse): ErrorCode | undefined {
  return (response as RefusedResponse)[REFUSAL];
}

/**
 * Rejects a request whose response has not started: with the status of the error's code, and a JSON-RPC error as body,
 * which MCP clients can show. Without a readable id the member is left out, because current clients reject null.
 */
export function respondError(
  response: ServerResponse,
  error: BridgeError,
  id?: JsonRpcId,
  extraHeaders: OutgoingHttpHeaders = {},
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  noteRefusal(response, error.code);
  const body = errorFrame(id, rpcErrorOf(error)).bytes;
  const headers: OutgoingHttpHeaders = {
    'Content-Type': JSON_TYPE,
    'Content-Length': body.length,
    ...AS_IT_IS,
    ...extraHeaders,
  };
  if (error.retryAfterMs !== undefined) headers['Retry-After'] = Math.max(1, Math.ceil(error.retryAfterMs / 1000));
  response.writeHead(error.audiences.http ?? 500, headers).end(body);
}

/** Sends a response without a body. */
export function respondEmpty(response: ServerResponse, status: 200 | 202 | 204): void {
  response.writeHead(status, status === 204 ? {} : { 'Content-Length': 0 }).end();
}

/** Responds with text for people. */
export function respondText(response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(text);
  response
    .writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': body.length, ...AS_IT_IS })
    .end(body);
}

export function respondJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response
    .writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': body.length, 'Cache-Control': 'no-store' })
    .end(body);
}
