/** From what an HTTP client tells to what the classifier reads. */
import type { BridgeError } from '../../../errors.ts';
import type { ResponseHead } from '../../../http/client/http-call.ts';
import type { HttpStatus, ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import { asFields, readMembers } from '../../../mcp/vocabulary/payload.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import { Frame, type JsonRpcId } from '../../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../../wire/read-message.ts';

/** A server that asks for more is not waited for; see MAX_WAIT_MS in the driver. */
const MAX_RETRY_AFTER_S = 24 * 60 * 60;

export function statusOf({ status, headers }: ResponseHead): HttpStatus {
  return { status, retryAfterMs: parseRetryAfter(headers['retry-after'], Date.now()) };
}

/** [RFC 9110 10.2.3] seconds, or a date. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value), MAX_RETRY_AFTER_S) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

/**
 * The response to `id` in a body or event, which may be an array of messages. An error without id is taken for it: the
 * server could not read the request, and there was only one. [spec 2025-11-25 schema#jsonrpcerrorresponse]
 */
export function findResponse(bytes: Buffer, id: JsonRpcId): Frame | undefined {
  const read = readMessage(bytes, SERVER_LIMITS);
  if (read.kind === 'fault') return undefined;
  const items = read.kind === 'message' ? [read.frame] : read.items;
  return items.find((item): item is Frame => item instanceof Frame && answers(item, id));
}

export function answers(frame: Frame, id: JsonRpcId): boolean {
  return frame.isResponse && (frame.id === id || (frame.id === undefined && frame.kind === 'error'));
}

export function outcomeOfResponse(response: Frame, http: HttpStatus | undefined): ProbeOutcome {
  const message = readMembers(response) ?? {};
  if (response.kind === 'result') return { kind: 'result', result: message.result };
  return { kind: 'error', error: toRpcError(message.error), http };
}

/** Whatever a server puts there. */
export function toRpcError(value: unknown): RpcError {
  const { code, message, data } = asFields(value) ?? {};
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : '',
    ...(data === undefined ? {} : { data }),
  };
}

/** Causes that show a connection was there. */
const BROKEN: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

/** No usable response; see http/client/client.ts and http/client/network-error.ts for what these errors carry. */
export function outcomeOfError({ code, data, retryAfterMs }: BridgeError): ProbeOutcome {
  switch (code) {
    case 'ERR_UPSTREAM_TIMEOUT':
      return data?.phase === 'connect' ? { kind: 'unreachable' } : { kind: 'silence' };
    case 'ERR_UPSTREAM_CLOSED':
      return { kind: 'lost' };
    case 'ERR_UPSTREAM_CONNECT':
      return BROKEN.has(data?.cause) ? { kind: 'lost' } : { kind: 'unreachable' };
    case 'ERR_UPSTREAM_UNREADABLE':
      return { kind: 'unreachable' };
    case 'ERR_UPSTREAM_EXITED':
      return { kind: 'exited' };
    case 'ERR_UPSTREAM_PROTOCOL':
      // Something came, and it was no answer.
      return { kind: 'status', http: { status: 200, retryAfterMs } };
    default:
      return typeof data?.status === 'number'
        ? { kind: 'status', http: { status: data.status, retryAfterMs } }
        : { kind: 'unreachable' };
  }
}
