/** What came of an attempt, in plain words, for people who have to find out why a server cannot be used. */
import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { assertNever, type BridgeError } from '../../../errors.ts';
import type { ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import { toPrintable } from '../../../printable.ts';

/** What is shown of a server's own words. */
const MAX_SHOWN_LENGTH = 200;

/**
 * What came of an attempt at the server called so, where a transport may have made an error of it. Its words are used
 * where they tell more than the status; which server it was needs not be said in a list of attempts.
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
  // What was asked stands before it, and what to check after all attempts.
  return said.replace(/^answered (?:\S+ with |with )?/, '').replace(/\.(?: Check that .*)?$/, '');
}

/** Completes "POST initialize: …". */
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

/** A response without a message. What it held instead tells a login page from an API. */
function describeBare(status: number, headers: IncomingHttpHeaders): string {
  const type = headers['content-type'];
  if (status === 202 || status === 204) return `${describeStatus(status)} without an answer`;
  const shown = type === undefined ? undefined : toPrintable(type.split(';', 1)[0] as string, 50);
  if (status >= 200 && status < 300) return `${describeStatus(status)} with ${shown ?? 'a body'} that is no MCP answer`;
  return shown === undefined ? describeStatus(status) : `${describeStatus(status)} (${shown})`;
}
