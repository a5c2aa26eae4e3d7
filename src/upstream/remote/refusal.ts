import { STATUS_CODES } from 'node:http';
import { BridgeError } from '../../errors.ts';
import type { ResponseHead } from '../../http/client.ts';
import { showUrl } from '../../http/shown-url.ts';
import { readPayload } from '../../mcp/payload.ts';
import { toPrintable } from '../../process/printable.ts';
import type { Frame } from '../../wire/frame.ts';
import { ServerMessages } from './read-messages.ts';

/** So much of an error page is looked at. */
export const MAX_REFUSAL_BYTES = 64 * 1024;
const MAX_SHOWN_LENGTH = 200;

/** A response other than 2xx, read as far as it helps. */
export interface Refusal {
  readonly status: number;
  /** The body, when it is a JSON-RPC error: about which request, its id says. */
  readonly frame: Frame | undefined;
  /** What it comes to when nothing better can be made of it. */
  readonly error: BridgeError;
}

export function readRefusal(url: URL, { status, headers }: ResponseHead, body: Buffer): Refusal {
  let frame: Frame | undefined;
  const messages = new ServerMessages((found) => {
    if (found.kind === 'error') frame ??= found;
  });
  // A copy: reading a message edits the bytes it is given.
  messages.take(Buffer.from(body));
  if (status === 401 || status === 403) {
    return { status, frame, error: authorizationError(url, status, headers['www-authenticate']) };
  }
  if (status === 407) {
    const message =
      'The proxy on the way to the server requires authorization (407). Put user and password into its URL.';
    return { status, frame, error: new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { status } }) };
  }
  const title = STATUS_CODES[status] === undefined ? '' : ` ${STATUS_CODES[status]}`;
  const said = frame === undefined ? textOf(body, headers['content-type']) : errorMessageOf(frame);
  const shown = toPrintable(said, MAX_SHOWN_LENGTH);
  const message = `The server at ${showUrl(url)} answered ${status}${title}${shown === '' ? '' : `: ${shown}`}`;
  const error = new BridgeError('ERR_UPSTREAM_HTTP', /[.!?…]$/.test(message) ? message : `${message}.`, {
    data: { status },
    ...retryAfter(headers['retry-after']),
  });
  return { status, frame, error };
}

/** [spec 2025-11-25 basic/authorization] a 401 says where to learn how to authorize; the user has to do it. */
function authorizationError(url: URL, status: number, challenge: string | undefined): BridgeError {
  const metadata = /resource_metadata="?([^",\s]+)/i.exec(challenge ?? '')?.[1];
  const metadataUrl = metadata !== undefined && URL.canParse(metadata) ? showUrl(new URL(metadata)) : undefined;
  const what =
    status === 401
      ? 'requires authorization, or does not accept the one it was given (401)'
      : 'does not allow this with the authorization it was given (403)';
  const where = metadataUrl === undefined ? '' : ` It describes how to get it at ${metadataUrl}.`;
  return new BridgeError(
    'ERR_UPSTREAM_AUTH',
    `The server at ${showUrl(url)} ${what}.${where} Give a token with --bearer-token-file or --header${status === 401 ? ', or log in with --login on-demand' : ''}.`,
    { data: { status, ...(metadataUrl !== undefined && { resourceMetadata: metadataUrl }) } },
  );
}

/** Of a page only its title: the rest is made for browsers. */
function textOf(body: Buffer, contentType: string | undefined): string {
  const text = body.toString('utf8', 0, 4 * 1024);
  if (!contentType?.includes('html') && !/^\s*<(!doctype|html)/i.test(text)) return text;
  return /<title[^>]*>([^<]*)/i.exec(text)?.[1] ?? '';
}

function errorMessageOf(frame: Frame): string {
  const message = readPayload(frame)?.message;
  return typeof message === 'string' ? message : '';
}

function retryAfter(value: string | undefined): { retryAfterMs?: number } {
  return value !== undefined && /^\d{1,6}$/.test(value) ? { retryAfterMs: Number(value) * 1000 } : {};
}
