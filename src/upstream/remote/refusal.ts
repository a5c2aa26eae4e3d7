import { STATUS_CODES } from 'node:http';
import { BridgeError } from '../../errors.ts';
import { parseAuthChallenge } from '../../http/client/credentials.ts';
import type { ResponseHead } from '../../http/client/http-call.ts';
import { showUrl } from '../../http/shown-url.ts';
import { classifySessionRefusal, type SessionVerdict } from '../../mcp/classify/session-refusal.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import { toPrintable } from '../../printable.ts';
import { answersId, type Frame } from '../../wire/frame.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import { takeMessages } from '../server-messages.ts';

/** Limit of the error page that is read. */
export const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_SHOWN_LENGTH = 200;

/** A response other than 2xx, with the useful parts of its body. */
export interface Refusal {
  readonly status: number;
  /** The body if it is a JSON-RPC error; its id names the request. */
  readonly frame: Frame | undefined;
  /** The server's own message, unmodified. */
  readonly reason: string;
  /** The error to report when there is no more specific one. */
  readonly error: BridgeError;
}

export function readRefusal(url: URL, head: ResponseHead, body: Buffer): Refusal {
  const { status, headers } = head;
  let frame: Frame | undefined;
  // Reading a message modifies its bytes, so it gets a copy.
  takeMessages(Buffer.from(body), new EnvelopeScanner(), (found) => {
    if (found.kind === 'error') frame ??= found;
  });
  const said = frame === undefined ? textOf(body, headers['content-type']) : errorMessageOf(frame);
  const shown = toPrintable(said, MAX_SHOWN_LENGTH);
  if (status === 401 || status === 403) {
    return { status, frame, reason: said, error: authorizationError(url, head, shown) };
  }
  if (status === 407) {
    const message =
      'The proxy on the way to the server requires authorization (407). Put user and password into its URL.';
    return { status, frame, reason: said, error: new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { status } }) };
  }
  const title = STATUS_CODES[status] === undefined ? '' : ` ${STATUS_CODES[status]}`;
  const message = `The server at ${showUrl(url)} answered ${status}${title}${shown === '' ? '' : `: ${shown}`}`;
  const error = new BridgeError('ERR_UPSTREAM_HTTP', /[.!?\u2026]$/.test(message) ? message : `${message}.`, {
    data: { status },
    ...retryAfter(headers['retry-after']),
  });
  return { status, frame, reason: said, error };
}

/** Classifies what the rejection of a message says about the session it was posted in. */
export function sessionVerdictOf({ status, frame, reason }: Omit<Refusal, 'error'>, refused: Frame): SessionVerdict {
  const code = frame === undefined ? undefined : readField(frame, 'code');
  const namesRequest = refused.kind === 'request' && answersId(frame?.id, refused.id);
  return classifySessionRefusal({ status, code, namesRequest, reason });
}

/** Classifies an error in an ordinary JSON-RPC response in the same way. */
export function sessionVerdictOfAnswer(answer: Frame, request: Frame): SessionVerdict {
  if (answer.kind !== 'error') return 'unrelated';
  return sessionVerdictOf({ status: 200, frame: answer, reason: errorMessageOf(answer) }, request);
}

/**
 * Creates the error for a 401 or 403. [spec 2025-11-25 basic/authorization] A 401 names the metadata that describes how
 * to authorize, which is up to the user. The server's message is shown for a 403, which may not be about credentials,
 * but not for a 401, whose message may repeat the rejected credentials.
 */
function authorizationError(url: URL, head: ResponseHead, said: string): BridgeError {
  const { status, headers, wasAuthorized, offersNoLogin } = head;
  const { resourceMetadata } = parseAuthChallenge(headers);
  const metadataUrl = resourceMetadata && showUrl(resourceMetadata);
  const noLogin = offersNoLogin ? ' and offers no login' : '';
  const refusal = wasAuthorized ? 'does not accept the token it was given' : 'requires authorization';
  const what =
    status === 401
      ? `${refusal} (401)${noLogin}`
      : `does not allow this${wasAuthorized ? ' with the token it was given' : ''} (403)`;
  const where = metadataUrl === undefined ? '' : ` It describes how to get it at ${metadataUrl}.`;
  const words = said === '' || status === 401 ? '' : ` It says: "${said}"${/[.!?\u2026]$/.test(said) ? '' : '.'}`;
  const login = status === 401 && !offersNoLogin ? ', or, if the server offers a login, --login on-demand' : '';
  return new BridgeError(
    'ERR_UPSTREAM_AUTH',
    `The server at ${showUrl(url)} ${what}.${words}${where} Give it ${wasAuthorized ? 'another' : 'a'} token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header${login}.`,
    { data: { status, ...(metadataUrl !== undefined && { resourceMetadata: metadataUrl }) } },
  );
}

/**
 * Extracts a short text: the title of an HTML page, the rest of which is for browsers, or the description of an OAuth
 * error. [RFC 6750 3, RFC 6749 5.2]
 */
function textOf(body: Buffer, contentType: string | undefined): string {
  const text = body.toString('utf8', 0, 4 * 1024);
  if (contentType?.includes('json')) return descriptionIn(text) ?? text;
  if (!contentType?.includes('html') && !/^\s*<(!doctype|html)/i.test(text)) return text;
  return /<title[^>]*>([^<]*)/i.exec(text)?.[1] ?? '';
}

function descriptionIn(text: string): string | undefined {
  try {
    const { error_description: description } = JSON.parse(text) ?? {};
    return typeof description === 'string' ? description : undefined;
  } catch {
    return undefined;
  }
}

function errorMessageOf(frame: Frame): string {
  const message = readField(frame, 'message');
  return typeof message === 'string' ? message : '';
}

function retryAfter(value: string | undefined): { retryAfterMs?: number } {
  return value !== undefined && /^\d{1,6}$/.test(value) ? { retryAfterMs: Number(value) * 1000 } : {};
}

/**
 * Temporary statuses: overload, or a gateway without its server. 409 comes from a server that has not noticed a break
 * yet.
 */
const passing: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504]);

/** True if the same request may succeed later. */
export function isPassing(status: number): boolean {
  return passing.has(status);
}
