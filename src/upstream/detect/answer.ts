import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { assertNever, type BridgeError } from '../../errors.ts';
import type { ResponseHead } from '../../http/client/http-call.ts';
import { parseRetryAfter } from '../../http/retry-after.ts';
import type { HttpStatus, ProbeOutcome } from '../../mcp/classify/probe-answer.ts';
import { asFields, readMembers } from '../../mcp/vocabulary/payload.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import { toPrintable } from '../../printable.ts';
import { answersId, Frame, type JsonRpcId } from '../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';

/** The result of one question to a server. */
export interface Answer<Outcome = AnyOutcome> {
  readonly outcome: Outcome;
  /** Undefined if there was no HTTP response, or the question was not asked over HTTP. */
  readonly head: ResponseHead | undefined;
  /** The transport's error, if there was no answer. */
  readonly error: BridgeError | undefined;
  /** A description of the result, in plain words. */
  readonly summary: string;
  readonly tookMs: number;
}

/** `found`: the event stream that was asked for exists. */
export type AnyOutcome = ProbeOutcome | { readonly kind: 'found' };

export function statusOf({ status, headers }: ResponseHead): HttpStatus {
  return { status, retryAfterMs: parseRetryAfter(headers['retry-after'], Date.now()) };
}

/**
 * Returns the response to `id` in a body or event, which may be an array of messages. An error without an id counts as
 * the response, because the server could not read a request, and there was only one.
 * [spec 2025-11-25 schema#jsonrpcerrorresponse]
 */
export function findResponse(bytes: Buffer, id: JsonRpcId): Frame | undefined {
  const read = readMessage(bytes, SERVER_LIMITS);
  if (read.kind === 'fault') return undefined;
  const items = read.kind === 'message' ? [read.frame] : read.items;
  return items.find((item): item is Frame => item instanceof Frame && answers(item, id));
}

export function answers(frame: Frame, id: JsonRpcId | undefined): boolean {
  return frame.isResponse && (answersId(frame.id, id) || (frame.id === undefined && frame.kind === 'error'));
}

export function outcomeOfResponse(response: Frame, http: HttpStatus | undefined): ProbeOutcome {
  const message = readMembers(response) ?? {};
  if (response.kind === 'result') return { kind: 'result', result: message.result };
  return { kind: 'error', error: toRpcError(message.error), http };
}

/** Reads an error of a server, which may have any form. */
export function toRpcError(value: unknown): RpcError {
  const { code, message, data } = asFields(value) ?? {};
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : '',
    ...(data === undefined ? {} : { data }),
  };
}

/** Network errors that show that there was a connection. */
const BROKEN: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Returns the outcome of a question without a usable response. The members of these errors are described in
 * http/client/client.ts and http/client/network-error.ts.
 */
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
      // The server sent something that was no answer.
      return { kind: 'status', http: { status: 200, retryAfterMs } };
    default:
      return typeof data?.status === 'number'
        ? { kind: 'status', http: { status: data.status, retryAfterMs } }
        : { kind: 'unreachable' };
  }
}

/** Descriptions of attempts, for people who have to find out why a server cannot be used. */

/** Characters of a server's own text that are shown. */
const MAX_SHOWN_LENGTH = 200;

/**
 * Describes the result of an attempt. A transport's error message is used if it tells more than the status. The name of
 * the server is left out, because the description belongs to a list of attempts at this server.
 */
export function describeAttempt(
  outcome: ProbeOutcome,
  error: BridgeError | undefined,
  { name, headers }: { readonly name: string; readonly headers?: IncomingHttpHeaders | undefined },
): string {
  const isPlain = error?.code === 'ERR_UPSTREAM_AUTH' || error?.retryAfterMs !== undefined;
  const saysMore = outcome.kind === 'status' || error?.code === 'ERR_UPSTREAM_CLOSED';
  if (error === undefined || !saysMore || isPlain) return describeOutcome(outcome, headers);
  const subject = `The server at ${name} `;
  const { message } = error;
  const said = message.startsWith(subject) ? message.slice(subject.length) : message;
  // The list shows the question before this text, and the advice after all attempts.
  return said.replace(/^answered (?:\S+ with |with )?/, '').replace(/\.(?: Check that .*)?$/, '');
}

/** Returns an outcome as the end of "POST initialize: …". */
export function describeOutcome(outcome: ProbeOutcome, headers: IncomingHttpHeaders = {}): string {
  switch (outcome.kind) {
    case 'result':
      return 'answered';
    case 'error':
      return outcome.http === undefined || outcome.http.status === 200
        ? describeRpcError(outcome.error)
        : `${describeStatus(outcome.http.status)} with ${describeRpcError(outcome.error)}`;
    case 'status':
      return describeBare(outcome.http.status, headers);
    case 'http-sse':
      return 'the event stream of HTTP+SSE';
    case 'silence':
      return 'no answer in time';
    case 'exited':
      return 'the server exited';
    case 'lost':
      return 'the connection broke before an answer came';
    case 'unreachable':
      return 'no connection';
    default:
      return assertNever(outcome);
  }
}

export function describeStatus(status: number): string {
  const phrase = STATUS_CODES[status];
  return phrase === undefined ? String(status) : `${status} ${phrase}`;
}

export function describeRpcError({ code, message }: RpcError): string {
  return `error ${code} "${toPrintable(String(message), MAX_SHOWN_LENGTH)}"`;
}

/** Describes a response without a message. The content type distinguishes a login page from an API. */
function describeBare(status: number, headers: IncomingHttpHeaders): string {
  const type = headers['content-type'];
  if (status === 202 || status === 204) return `${describeStatus(status)} without an answer`;
  const shown = type === undefined ? undefined : toPrintable(type.split(';', 1)[0] as string, 50);
  if (status >= 200 && status < 300) return `${describeStatus(status)} with ${shown ?? 'a body'} that is no MCP answer`;
  return shown === undefined ? describeStatus(status) : `${describeStatus(status)} (${shown})`;
}
