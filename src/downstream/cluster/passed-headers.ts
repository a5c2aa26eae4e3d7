import { ABOUT_CONNECTION } from '../../http/request-headers.ts';
import type { ForwardedRequest } from './forwarder.ts';
import { HOP_HEADER } from './hops.ts';

/** What is about one connection only, and what no client may say. */
const NOT_PASSED: ReadonlySet<string> = new Set([...ABOUT_CONNECTION, HOP_HEADER]);

/** Names and values in turn, as the client has sent them. */
export function passedHeaders({ request, body }: ForwardedRequest, pass: string): string[] {
  const { rawHeaders } = request;
  const passed: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = [rawHeaders[index], rawHeaders[index + 1]];
    const lower = name.toLowerCase();
    const isReplaced = body !== undefined && lower === 'content-length';
    if (!NOT_PASSED.has(lower) && !isReplaced) passed.push(name, value);
  }
  if (body !== undefined) passed.push('Content-Length', String(body.length));
  else if (request.headers['transfer-encoding'] !== undefined) passed.push('Transfer-Encoding', 'chunked');
  passed.push(HOP_HEADER, pass);
  return passed;
}

/** The headers of a response that go on to the client. */
export function returnedHeaders(rawHeaders: readonly string[]): string[] {
  const returned: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = [rawHeaders[index], rawHeaders[index + 1]];
    if (!NOT_PASSED.has(name.toLowerCase())) returned.push(name, value);
  }
  return returned;
}
