import type { IncomingMessage } from 'node:http';
import { ABOUT_CONNECTION } from '../../http/headers.ts';
import { NOT_HERE_HEADER } from './hops.ts';

/** What is about one connection only. */
const NOT_PASSED: ReadonlySet<string> = new Set(ABOUT_CONNECTION);

/**
 * Names, in lower case, and values in turn, as the client has sent them.
 * @param body what was read of the request already, and is passed on in one piece
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
  /** Those that go on to the client: names and values in turn. */
  readonly headers: string[];
  readonly hasLength: boolean;
  /** The replica does not have what it was asked for. */
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
