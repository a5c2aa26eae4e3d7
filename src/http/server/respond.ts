import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { BridgeError, ErrorCode } from '../../errors.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { JSON_TYPE } from '../headers.ts';

const AS_IT_IS: OutgoingHttpHeaders = {
  // It is about one caller and its session, which is no part of the URL that caches go by. [RFC 9111 4.2.2]
  'Cache-Control': 'no-store',
  // It may repeat a part of the request: nobody shall take that for a page.
  'X-Content-Type-Options': 'nosniff',
};

/** Why a request was refused is a property of its response itself, for those who count that. */
const REFUSAL = Symbol('refusal');

type RefusedResponse = ServerResponse & { [REFUSAL]?: ErrorCode };

/** Undefined: it was not refused by `respondError`. */
export function refusalOf(response: ServerResponse): ErrorCode | undefined {
  return (response as RefusedResponse)[REFUSAL];
}

/**
 * Refuses a request whose response has not started: the status of the error's code, and a JSON-RPC error as body so
 * that an MCP client can show it. Without a readable id the member is left out: current clients reject null.
 */
export function respondError(
  response: ServerResponse,
  error: BridgeError,
  id?: JsonRpcId,
  extraHeaders: OutgoingHttpHeaders = {},
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  (response as RefusedResponse)[REFUSAL] = error.code;
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

/** Answers something that needs no answer. */
export function respondEmpty(response: ServerResponse, status: 200 | 202 | 204): void {
  response.writeHead(status, status === 204 ? {} : { 'Content-Length': 0 }).end();
}

/** Responds with text that people read. */
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
