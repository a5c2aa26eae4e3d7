import { createHash } from 'node:crypto';
import type { Lane } from './lane.ts';

/** Who sends a request, as far as a server is told of it. */
export interface Caller {
  /** The authenticated caller, or one name for all where nobody is asked. */
  readonly principal: string;
  /** What the user lets pass of the caller's HTTP request; see `Lane`. Who shows other values is another caller. */
  readonly headers?: Lane['headers'];
}

/** Equal for requests of one caller that let the same pass to the server. */
export function callerOf({ principal, headers }: Caller): string {
  return headers === undefined ? principal : JSON.stringify([principal, digestOf(headers)]);
}

/** The values may be credentials, which belong into no key. */
function digestOf(headers: NonNullable<Lane['headers']>): string {
  const entries = Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(entries)).digest('base64');
}
