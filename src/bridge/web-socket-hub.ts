import type { WebSocketHubConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import type { ConnectionClient } from '../downstream/duplex/connection-peer.ts';
import type { WebSocketEndpoint } from '../downstream/websocket/endpoint.ts';
import { assertNever, BridgeError } from '../errors.ts';
import { HttpClient } from '../http/client/client.ts';
import { SessionCookies } from '../http/client/cookies.ts';
import { codeOf } from '../http/client/network-error.ts';
import { showUrl } from '../http/shown-url.ts';
import { CLOSE_CODES } from '../http/websocket/close-codes.ts';
import type { ConnectionEnd } from '../http/websocket/connection.ts';
import { readRefusal } from '../upstream/remote/refusal.ts';
import { CLIENT_INFO } from '../version.ts';
import type { Hub, HubAttempt, HubEvents } from './hub-call.ts';

const CONNECT_TIMEOUT_MS = 10_000;

export interface WebSocketHubOptions {
  readonly hub: WebSocketHubConfig;
  readonly maxMessageBytes: number;
  /**
   * Returns the endpoint that serves the clients there. Rejects with a BridgeError if the server cannot be served now.
   */
  readonly endpoint: () => Promise<Pick<WebSocketEndpoint, 'serve'>>;
  readonly deps: Deps;
}

/** A hub whose clients are behind a WebSocket. */
export class WebSocketHub implements Hub {
  readonly name: string;
  readonly #options: WebSocketHubOptions;
  readonly #http: HttpClient;
  readonly #client: ConnectionClient;

  /** Throws BridgeError ERR_CONFIG_OPTION when a certificate file or a proxy cannot be used. */
  constructor(options: WebSocketHubOptions) {
    const { hub, deps } = options;
    this.#options = options;
    this.name = showUrl(hub.url);
    const callerName = `hub:${hub.url.host}`;
    this.#client = {
      transport: 'websocket',
      principal: callerName,
      environment: undefined,
      callerName,
      headers: undefined,
    };
    this.#http = createClient(hub, deps);
  }

  async open(events: HubEvents): Promise<HubAttempt> {
    const { hub, maxMessageBytes } = this.#options;
    const endpoint = await this.#options.endpoint();
    const request = {
      url: hub.url,
      forwarded: undefined,
      cookies: new SessionCookies(),
      maxMessageBytes,
      timeouts: { connectMs: CONNECT_TIMEOUT_MS, firstByteMs: 0 },
    };
    let isAborted = false;
    const opening = this.#http.openWebSocket(request, {
      opened: (open) => {
        if (isAborted) return open.socket.terminate();
        events.opened();
        void endpoint.serve(open, this.#client).then((end) => events.ended(describeEnd(end)));
      },
      refused: (head, body) => {
        events.failed(forHubs(readRefusal(hub.url, head, body).error, head.status, this.name));
      },
      failed: (error) => events.failed(trustedForHubs(error, this.name)),
    });
    return {
      abort: () => {
        isAborted = true;
        opening.abort();
      },
    };
  }

  close(): void {
    this.#http.close();
  }
}

function createClient({ headers, token, caFile, proxyEnv }: WebSocketHubConfig, { clock }: Deps): HttpClient {
  const authorized =
    token?.kind === 'value' ? new Map([...headers, ['authorization', `Bearer ${token.token}`]]) : headers;
  return new HttpClient({
    headers: authorized,
    bearerTokenFile: token?.kind === 'file' ? token.file : undefined,
    credentials: undefined,
    tls: { caFile, certFile: undefined, keyFile: undefined },
    proxyEnv,
    socketPath: undefined,
    userAgent: `${CLIENT_INFO.name}/${CLIENT_INFO.version}`,
    clock,
  });
}

/** Replaces the advice in an authentication error: hubs have other options than servers. */
function forHubs(error: BridgeError, status: number, name: string): BridgeError {
  if (error.code !== 'ERR_UPSTREAM_AUTH' || status === 407) return error;
  const message = `The hub at ${name} refused the call (${status}). Show it a token with --dial-token, or what else it wants with --dial-header.`;
  return new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { status } });
}

/** Errors of certificates whose issuer is not trusted. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_ISSUER_CERT',
]);

function trustedForHubs(error: BridgeError, name: string): BridgeError {
  const code = codeOf(error.cause);
  if (!UNTRUSTED.has(code)) return error;
  const message = `The certificate of the hub at ${name} is not trusted here (${code}). If it is a hub of your own, name its authority with --dial-ca.`;
  return new BridgeError(error.code, message, { cause: error.cause, data: { cause: code } });
}

function describeEnd(end: ConnectionEnd | undefined): string {
  switch (end?.kind) {
    case undefined:
      return 'the server behind this bridge has ended';
    case 'closed':
      return end.code === CLOSE_CODES.noStatus
        ? 'the hub closed it'
        : `the hub closed it (${end.code}${end.reason === '' ? '' : `: ${end.reason}`})`;
    case 'refused':
      return `the hub sent ${end.problem} (${end.code})`;
    case 'silent':
      return 'the hub answered no pings';
    case 'stalled':
      return `the hub took nothing of what was sent to it for ${end.forMs} ms`;
    case 'lost':
      return 'it broke';
    case 'cut':
      return 'the hub took too little of what was sent to it';
    default:
      return assertNever(end);
  }
}
