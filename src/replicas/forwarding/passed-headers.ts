import type { IncomingMessage } from 'node:http';
import { ABOUT_CONNECTION } from '../../http/headers.ts';
import { NOT_HERE_HEADER } from './passed-request.ts';

/** Headers that apply to one connection only (hop-by-hop). */
const NOT_PASSED: ReadonlySet<string> = new Set(ABOUT_CONNECTION);

/**
 * Returns the headers that are forwarded, as alternating lower-case names and values in the order received.
 * @param body the request body if it was read already; it is then forwarded in one piece, with its own Content-Length
 */
export function passedHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, body: Buffer | undefined): string[] {
  const passed: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = [rawHeaders[index]?.toLowerCase(), rawHeaders[index + 1]];
    const isReplaced = body !== undefined && name === 'content-length';
    if (!NOT_PASSED.has(name) && !isReplaced) passed.push(name, value);
  }
  if (body !== undefined) passed.push('content-length', String(body.length));
  return passed;
}

export interface ReturnedHeaders {
  /** Headers forwarded to the client, as alternating names and values. */
  readonly headers: string[];
  readonly hasLength: boolean;
  /** True if the replica does not have the session or call. */
  readonly isNotHere: boolean;
}

export function readReturnedHeaders(headers: readonly string[]): ReturnedHeaders {
  const returned: string[] = [];
  let hasLength = false;
  let isNotHere = false;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const [name = '', value = ''] = [headers[index], headers[index + 1]];
    const lower = name.toLowerCase();
    if (lower === 'content-length') hasLength = true;
    else if (lower === NOT_HERE_HEADER) isNotHere = true;
    if (!NOT_PASSED.has(lower)) returned.push(name, value);
  }
  return { headers: returned, hasLength, isNotHere };
}
