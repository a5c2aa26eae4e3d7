import type { HubConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import type { ConnectionClient } from '../downstream/duplex/connection-peer.ts';
import type { WebSocketEndpoint } from '../downstream/websocket/endpoint.ts';
import { assertNever, BridgeError, toBridgeError } from '../errors.ts';
import { HttpClient } from '../http/client/client.ts';
import { SessionCookies } from '../http/client/cookies.ts';
import { codeOf } from '../http/client/network-error.ts';
import type { OpenWebSocket, WebSocketOpening } from '../http/client/open-websocket.ts';
import { showUrl } from '../http/shown-url.ts';
import { CLOSE_CODES } from '../http/websocket/close-codes.ts';
import type { ConnectionEnd } from '../http/websocket/connection.ts';
import type { InspectedHub } from '../observe/inspection.ts';
import { readRefusal } from '../upstream/remote/refusal.ts';
import { CLIENT_INFO } from '../version.ts';

/** Pause before the next attempt, doubled after each attempt that fails. */
const FIRST_PAUSE_MS = 1000;
/** Longest pause, whatever the hub requests: a device that stays offline for days looks broken. */
const MAX_PAUSE_MS = 60_000;
/**
 * A connection that lasted this long counts as a success. One that ends at once may be the hub's way of rejecting it.
 */
const GOOD_AFTER_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

export interface HubCallOptions {
  readonly hub: HubConfig;
  readonly maxMessageBytes: number;
  /**
   * Returns the endpoint that serves the clients there. Rejects with a BridgeError if the server cannot be served now.
   */
  readonly endpoint: () => Promise<Pick<WebSocketEndpoint, 'serve'>>;
  readonly deps: Deps;
  /** Returns a number from 0 to 1, so that bridges that lost the same hub do not reconnect at the same moment. */
  readonly random: () => number;
}

/**
 * - `calling`: a connection is being opened.
 * - `connected`: the clients at the hub are served.
 * - `pausing`: the last attempt failed or the connection ended; the next attempt follows.
 * - `closed`: no further attempt is made.
 */
type State =
  | { readonly kind: 'calling'; readonly opening: WebSocketOpening | undefined }
  | { readonly kind: 'connected'; readonly sinceMs: number }
  | { readonly kind: 'pausing'; readonly problem: string; readonly cancel: () => void }
  | { readonly kind: 'closed' };

/**
 * The bridge's connection to a hub where clients wait: serves those clients, and reconnects when the connection ends.
 */
export class HubCall {
  readonly #options: HubCallOptions;
  readonly #http: HttpClient;
  readonly #name: string;
  readonly #client: ConnectionClient;
  #pauseMs = FIRST_PAUSE_MS;
  /** The latest problem that was logged; a repetition is logged at the debug level. */
  #told: string | undefined;
  #state: State = { kind: 'calling', opening: undefined };

  /** Throws BridgeError ERR_CONFIG_OPTION when a certificate file or a proxy cannot be used. */
  constructor(options: HubCallOptions) {
    this.#options = options;
    const { hub, deps } = options;
    this.#name = showUrl(hub.url);
    const callerName = `hub:${hub.url.host}`;
    this.#client = {
      transport: 'websocket',
      principal: callerName,
      environment: undefined,
      callerName,
      headers: undefined,
    };
    this.#http = createClient(hub, deps);
    void this.#call();
  }

  inspect(): InspectedHub {
    const { kind } = this.#state;
    return {
      url: this.#name,
      state: kind === 'connected' ? 'connected' : 'calling',
      problem: this.#state.kind === 'pausing' ? this.#state.problem : undefined,
    };
  }

  /** Makes no further attempts. An open connection is left to its endpoint, which ends it. */
  close(): void {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    if (state.kind === 'calling') state.opening?.abort();
    if (state.kind === 'pausing') state.cancel();
    this.#http.close();
  }

  async #call(): Promise<void> {
    try {
      const endpoint = await this.#options.endpoint();
      if (this.#state.kind !== 'calling') return;
      this.#open(endpoint);
    } catch (thrown) {
      this.#failed(toBridgeError(thrown));
    }
  }

  #open(endpoint: Pick<WebSocketEndpoint, 'serve'>): void {
    const { hub, maxMessageBytes } = this.#options;
    const request = {
      url: hub.url,
      forwarded: undefined,
      cookies: new SessionCookies(),
      maxMessageBytes,
      timeouts: { connectMs: CONNECT_TIMEOUT_MS, firstByteMs: 0 },
    };
    const opening = this.#http.openWebSocket(request, {
      opened: (open) => this.#opened(endpoint, open),
      refused: (head, body) => this.#failed(forHubs(readRefusal(hub.url, head, body).error, head.status, this.#name)),
      failed: (error) => this.#failed(trustedForHubs(error, this.#name)),
    });
    this.#state = { kind: 'calling', opening };
  }

  #opened(endpoint: Pick<WebSocketEndpoint, 'serve'>, open: OpenWebSocket): void {
    const { clock, log } = this.#options.deps;
    if (this.#state.kind !== 'calling') return open.socket.terminate();
    const sinceMs = clock.now();
    this.#state = { kind: 'connected', sinceMs };
    this.#told = undefined;
    log.info(`connected to ${this.#name}; serving its clients`);
    void endpoint.serve(open, this.#client).then((end) => this.#ended(end, clock.now() - sinceMs));
  }

  #ended(end: ConnectionEnd | undefined, lastedMs: number): void {
    if (this.#state.kind !== 'connected') return;
    if (lastedMs >= GOOD_AFTER_MS) this.#pauseMs = FIRST_PAUSE_MS;
    this.#pause(`the connection to ${this.#name} ended: ${describeEnd(end)}`, 'info', 0);
  }

  #failed(error: BridgeError): void {
    if (this.#state.kind !== 'calling') return;
    this.#pause(error.message.replace(/\.$/, ''), 'warn', error.retryAfterMs ?? 0);
  }

  #pause(problem: string, level: 'info' | 'warn', atLeastMs: number): void {
    const { deps, random } = this.#options;
    const usualMs = Math.round(this.#pauseMs * (0.5 + random() / 2));
    const pauseMs = Math.min(Math.max(atLeastMs, usualMs), MAX_PAUSE_MS);
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    const isNews = problem !== this.#told;
    this.#told = problem;
    deps.log[isNews ? level : 'debug'](`${problem}; calling again in ${(pauseMs / 1000).toFixed(1)} s`);
    const cancel = deps.clock.after(pauseMs, () => {
      this.#state = { kind: 'calling', opening: undefined };
      void this.#call();
    });
    this.#state = { kind: 'pausing', problem, cancel };
  }
}

function createClient({ headers, token, caFile, proxyEnv }: HubConfig, { clock }: Deps): HttpClient {
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
