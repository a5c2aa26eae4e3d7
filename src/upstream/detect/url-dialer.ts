import type { Protocol } from '../../config/server.ts';
import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { Credentials } from '../../http/client/credentials.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type {
  CallContext,
  Readiness,
  ServerListener,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from '../../relay/ports.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import { createStatelessDialer } from '../streamable-stateless/dialer.ts';
import { FirstFailures } from './first-failures.ts';
import type { JoinEras, JoinedDialers } from './joined-dialers.ts';
import { UrlRequests } from './url-requests.ts';
import {
  createHttpClient,
  createSessionDialer,
  dialerOptions,
  type ModernServers,
  type RemoteOptions,
} from './url-sessions.ts';
import { createKeyOf, type KeyOf, type Learned, VerdictCache } from './verdict-cache.ts';

export interface UrlDialerOptions extends RemoteOptions {
  readonly learned: Learned;
  readonly joinEras: JoinEras;
}

/**
 * A server at a URL, for clients of both eras. What it speaks is found out with the first message of the first client of
 * an era, in that client's era first: a server of both eras translates nothing. `--protocol` and `--transport` narrow
 * that down. Owns the dialers it has made.
 * @throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used
 */
export function createUrlDialer(options: UrlDialerOptions): UpstreamDialer {
  return new UrlDialer(options);
}

class UrlDialer implements UpstreamDialer {
  readonly name: string;
  readonly #protocol: Protocol;
  readonly #joined: JoinedDialers;
  readonly #legacy: SessionDialer;
  readonly #modern: UpstreamDialer;
  /** The dialer for sessions of legacy clients. */
  readonly #sessions: SessionDialer;
  readonly #http: HttpClient;
  readonly #credentials: Credentials | undefined;
  readonly #requests: UrlRequests;
  readonly #keyOf: KeyOf;
  readonly #failures: FirstFailures;
  /** How the server takes an `initialize`. */
  readonly #sessionVerdicts: VerdictCache;
  /** Is it modern? A server of both eras is both. */
  readonly #requestVerdicts: VerdictCache;
  #isClosed = false;

  constructor(options: UrlDialerOptions) {
    const { target, protocol, remote, credentials, deps, joinEras, learned } = options;
    this.#credentials = credentials;
    this.name = showUrl(target.url);
    this.#protocol = remote.transport === 'sse' ? 'legacy' : protocol;
    if (protocol === 'modern') learned({ transport: 'streamable-http', era: 'modern', revision: undefined });
    this.#keyOf = createKeyOf(target.url, remote);
    this.#failures = new FirstFailures(deps);
    this.#sessionVerdicts = new VerdictCache(deps.clock, learned);
    this.#requestVerdicts = new VerdictCache(deps.clock, learned);
    this.#modern = createStatelessDialer({
      ...dialerOptions(options),
      doubted: (exchange) => this.#doubted(exchange),
    });
    // The one below the pool never asks for the modern era, and what it finds is of no use to the other.
    const pooled: RemoteOptions = { ...options, protocol: 'legacy' };
    this.#legacy = this.#createSessions(pooled, new VerdictCache(deps.clock, learned), { kind: 'refused' });
    this.#joined = joinEras({ legacy: this.#legacy, modern: this.#modern });
    const translated = { kind: 'translated', dialer: this.#joined.legacyToModern } as const;
    this.#sessions = this.#createSessions(options, this.#sessionVerdicts, translated);
    this.#http = createHttpClient(options);
    this.#requests = new UrlRequests({
      ...options,
      joined: this.#joined,
      http: this.#http,
      verdicts: this.#requestVerdicts,
      keyOf: this.#keyOf,
      failures: this.#failures,
    });
  }

  #createSessions(options: RemoteOptions, verdicts: VerdictCache, modern: ModernServers): SessionDialer {
    return createSessionDialer(options, {
      verdicts,
      keyOf: this.#keyOf,
      failures: this.#failures,
      modern: this.#protocol === 'legacy' ? { kind: 'unasked' } : modern,
      // To refuse `initialize` as modern servers do is proof, whatever was found out before.
      foundModern: (key, revision) => this.#requestVerdicts.store(key, { kind: 'modern', revision }),
      failed: (key) => this.#requestVerdicts.doubt(key, 'legacy'),
    });
  }

  /** It refused a request as no modern server does. The next client finds out what it speaks now. */
  #doubted(exchange: Exchange | undefined): void {
    const key = this.#keyOf(exchange?.lane.headers);
    this.#sessionVerdicts.doubt(key, 'modern');
    this.#requestVerdicts.doubt(key, 'modern');
  }

  dial(listener: ServerListener, session?: SessionState): UpstreamLink {
    this.#checkOpen();
    return (this.#protocol === 'modern' ? this.#joined.legacyToModern : this.#sessions).dial(listener, session);
  }

  #checkOpen(): void {
    if (!this.#isClosed) return;
    throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
  }

  dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
    this.#checkOpen();
    switch (this.#protocol) {
      case 'legacy':
        return this.#joined.modernToLegacy.dialCalls(listener, context);
      case 'modern':
        return this.#joined.modern.dialCalls(listener, context);
      case 'auto':
        return this.#requests.dial(listener, context);
    }
  }

  /** The readiness of the server, as known from the latest attempts to reach it. */
  readiness(): Readiness {
    const known = [this.#sessions, this.#joined.modern, this.#joined.modernToLegacy, this.#requests];
    return known.map((part) => part.readiness()).find(({ state }) => state !== 'ready') ?? { state: 'ready' };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#credentials?.close();
    this.#requests.close(SHUTTING_DOWN);
    const { legacyToModern, modernToLegacy, modern } = this.#joined;
    await Promise.all([this.#sessions, legacyToModern, modernToLegacy, modern].map((dialer) => dialer.close()));
    await Promise.all([this.#legacy.close(), this.#modern.close()]);
    this.#http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#credentials?.close();
    for (const dialer of [this.#sessions, this.#legacy, this.#modern]) dialer.killNow();
    this.#http.close();
  }
}
