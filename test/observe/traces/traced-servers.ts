/** Servers that tell what they see of the trace of a call, made with the official SDKs. */
import type { ExecutionContext } from 'ava';
import { serveModern } from '../../fixtures/modern-server/http.ts';
import { createTracedServer as createLegacy } from '../../fixtures/traced-server/legacy.js';
import { createTracedServer as createModern } from '../../fixtures/traced-server/modern.js';
import { startHttpSse, startStreamable } from '../../support/sdk-servers.ts';
import { serverProgram } from '../../support/server-program.ts';

/** What a server has seen of one call. */
export interface Seen {
  readonly meta: Readonly<Record<string, unknown>> | null;
  readonly headers: Readonly<Record<string, unknown>> | null;
}

function command(name: string): readonly string[] {
  const program = serverProgram(new URL(`../../fixtures/traced-server/${name}.js`, import.meta.url));
  return ['--', process.execPath, program];
}

export const LEGACY_COMMAND = command('legacy');
export const MODERN_COMMAND = command('modern-stdio');

export interface TracedServerKind {
  readonly transport: string;
  readonly revision: string;
  /** What the bridge is given to reach it. */
  readonly start: (t: ExecutionContext) => Promise<readonly string[]>;
}

const closing = async (t: ExecutionContext, starting: Promise<{ readonly url: URL; close(): Promise<void> }>) => {
  const { url, close } = await starting;
  t.teardown(close);
  return [url.href];
};

export const SERVERS: Readonly<Record<string, TracedServerKind>> = {
  'a legacy command': { transport: 'stdio', revision: '2025-11-25', start: async () => LEGACY_COMMAND },
  'a modern command': { transport: 'stdio', revision: '2026-07-28', start: async () => MODERN_COMMAND },
  'a legacy server over Streamable HTTP': {
    transport: 'streamable-http',
    revision: '2025-11-25',
    start: (t) => closing(t, startStreamable({ createServer: createLegacy })),
  },
  'a legacy server over HTTP+SSE': {
    transport: 'http-sse',
    revision: '2025-11-25',
    start: (t) => closing(t, startHttpSse(createLegacy)),
  },
  'a modern server over HTTP': {
    transport: 'streamable-http',
    revision: '2026-07-28',
    start: (t) => closing(t, serveModern({ createServer: createModern })),
  },
};

export const seenBy = (text: string): Seen => JSON.parse(text);
