import type { IncomingMessage } from 'node:http';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import type { PublicUrl } from '../../http/server/public-url.ts';
import { respondText } from '../../http/server/respond.ts';
import { SESSION_ID_HEADER } from '../../mcp/vocabulary/headers.ts';
import type { HttpRoute } from './http-server.ts';

/**
 * Returns true if a browser navigates to this address. A browser accepts any content type, so its GET could open an
 * event stream and start a server process. Browsers ask for HTML first, though, and newer ones say that the response is
 * for a window. [W3C Fetch Metadata 2.2]
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
  /** Name of the transport as shown to people. */
  readonly transport: string;
  readonly path: string;
  /** Scheme of its URLs, which gets an `s` under TLS. */
  readonly scheme: 'http' | 'ws';
}

/** Returns the address of an endpoint whose path has this URL over HTTP. */
export function addressOf({ scheme }: Pick<Endpoint, 'scheme'>, url: string): string {
  return scheme === 'ws' ? url.replace(/^http/, 'ws') : url;
}

/**
 * Creates the page that a browser gets at the endpoints of a server: what the address is for, and which addresses MCP
 * clients need.
 */
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
