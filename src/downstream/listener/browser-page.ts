import type { IncomingMessage } from 'node:http';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import type { PublicUrl } from '../../http/server/public-url.ts';
import { respondText } from '../../http/server/respond.ts';
import { SESSION_ID_HEADER } from '../../mcp/vocabulary/headers.ts';
import type { HttpRoute } from './http-server.ts';

/**
 * Somebody looks at the address in a browser. Browsers take any type if need be, event streams too, and would start a
 * server process by it; but they ask for HTML first, and newer ones say that the answer is for a window.
 * [W3C Fetch Metadata 2.2]
 */
export function isBrowserNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (headers[SESSION_ID_HEADER] !== undefined) return false;
  if (headers['sec-fetch-mode'] === 'navigate' || headers['sec-fetch-dest'] === 'document') return true;
  const { accept = '' } = headers;
  return HTML_FIRST.test(accept) && !accept.toLowerCase().includes(EVENT_STREAM_TYPE);
}

const HTML_FIRST = /^\s*(text\/html|application\/xhtml\+xml)\b/i;

export interface Endpoint {
  /** The name of the transport, as people read it. */
  readonly transport: string;
  readonly path: string;
  /** The scheme of its URLs, which ends with an s where TLS is spoken. */
  readonly scheme: 'http' | 'ws';
}

/** Where clients find an endpoint, whose path would be at this URL over HTTP. */
export function addressOf({ scheme }: Pick<Endpoint, 'scheme'>, url: string): string {
  return scheme === 'ws' ? url.replace(/^http/, 'ws') : url;
}

/** What a browser gets at the endpoints of a server: what this is, and the addresses that clients need. */
export function browserPages(endpoints: readonly Endpoint[], publicUrl: PublicUrl): ReadonlyMap<string, HttpRoute> {
  const page: HttpRoute = (request, response) => {
    const lines = [
      'This is mcp-portage: it serves an MCP server (Model Context Protocol) over HTTP.',
      'A browser cannot use it. Give this address to an MCP client:',
      '',
      ...endpoints.map((endpoint) => {
        const { transport, path } = endpoint;
        return `  ${transport.padEnd(15)}  ${addressOf(endpoint, publicUrl(path, request))}`;
      }),
      '',
      'More: npx mcp-portage --help, and https://modelcontextprotocol.io for what MCP is.',
      '',
    ];
    respondText(response, 200, lines.join('\n'));
  };
  return new Map(endpoints.map(({ path }) => [path, page]));
}
