import { type Logger, pino } from 'pino';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import type { RemoteTimeouts } from '../../src/config/remote.ts';
import type { Clock } from '../../src/deps.ts';
import type { HttpClientOptions } from '../../src/http/client/client.ts';
import type { SessionDialer, UpstreamDialer } from '../../src/relay/ports.ts';
import { asSessionDialer } from '../../src/upstream/connection.ts';
import { createHttpSseConnector } from '../../src/upstream/http-sse/connector.ts';
import type { RemoteConnectorOptions } from '../../src/upstream/remote/remote-environment.ts';
import { Reachability } from '../../src/upstream/resilience/reachability.ts';
import { createStreamableConnector } from '../../src/upstream/streamable-session/connector.ts';
import { createStatelessDialer } from '../../src/upstream/streamable-stateless/dialer.ts';
import { createWebSocketConnector } from '../../src/upstream/websocket/connector.ts';
import { EnvelopeScanner } from '../../src/wire/scan-envelope.ts';
import { createClient } from '../http/recorded-call.ts';

export interface DialOptions {
  readonly client?: Partial<HttpClientOptions>;
  readonly timeouts?: Partial<RemoteTimeouts>;
  readonly maxMessageBytes?: number;
  readonly log?: Logger;
  /** Default: the time of the system. */
  readonly clock?: Clock;
}

export const dialStreamable = (url: URL, options?: DialOptions): SessionDialer =>
  asSessionDialer(createStreamableConnector(dialerOptions(url, options)));

export const dialHttpSse = (url: URL, options?: DialOptions): SessionDialer =>
  asSessionDialer(createHttpSseConnector(dialerOptions(url, options)));

export const dialStateless = (url: URL, options?: DialOptions): UpstreamDialer =>
  createStatelessDialer({ ...dialerOptions(url, options), doubted: () => {} });

export const dialWebSocket = (url: URL, options?: DialOptions & { readonly pingMs?: number }): SessionDialer =>
  asSessionDialer(
    createWebSocketConnector({ ...dialerOptions(url, options), ...(options?.pingMs && { pingMs: options.pingMs }) }),
  );

export function dialerOptions(
  url: URL,
  { client, timeouts, maxMessageBytes, log, clock }: DialOptions = {},
): RemoteConnectorOptions {
  const deps = createSystemDeps(log ?? pino({ level: 'silent' }));
  return {
    url,
    http: createClient({ ...(clock && { clock }), ...client }),
    // A machine may be held up for some seconds.
    timeouts: { connectMs: 60_000, firstByteMs: 0, idleMs: 0, callMs: 0, ...timeouts },
    maxMessageBytes: maxMessageBytes ?? 16 * 1024 * 1024,
    tracing: 'off',
    scanner: new EnvelopeScanner(),
    reachability: new Reachability({ name: url.href, attempt: undefined, deps }),
    deps: clock === undefined ? deps : { ...deps, clock },
  };
}
