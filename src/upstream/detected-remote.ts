import type { Protocol } from '../config.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import type { HttpClient } from '../http/client/client.ts';
import type { Credentials } from '../http/client/credentials.ts';
import { showUrl } from '../http/shown-url.ts';
import type { Exchange } from '../relay/exchange.ts';
import type { CallContext, Readiness, ServerListener, UpstreamDialer, UpstreamLink } from '../relay/ports.ts';
import { FirstFailures } from './detect/first-failures.ts';
import type { JoinEras, JoinedDialers } from './detect/joined-dialers.ts';
import { RequestEras } from './detect/requests/request-eras.ts';
import { RequestLinks } from './detect/requests/request-links.ts';
import { createKeyOf, type KeyOf } from './detect/server-key.ts';
import type { ModernTurn } from './detect/sessions/find-link.ts';
import { VerdictCache } from './detect/verdict-cache.ts';
import { createHttpClient, createSessionDialer, dialerOptions, type RemoteOptions } from './remote.ts';
import { createStatelessDialer } from './streamable-stateless/dialer.ts';

export interface DetectedRemoteOptions extends RemoteOptions {
  readonly joinEras: JoinEras;
}

/**
 * A server at a URL, for clients of both eras. What it speaks is found out with the first message of the first client of
 * an era, in that client's era first: a server of both eras translates nothing. `--protocol` and `--transport` narrow
 * that down. Owns the dialers it has made.
 * @throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used
 */
export function createDetectedRemoteDialer(options: DetectedRemoteOptions): UpstreamDialer {
  return new DetectedRemote(options);
}

class DetectedRemote implements UpstreamDialer {
  readonly name: string;
  readonly #protocol: Protocol;
  readonly #joined: JoinedDialers;
  readonly #legacy: UpstreamDialer;
  readonly #modern: UpstreamDialer;
  /** The dialer for sessions of legacy clients. */
  readonly #sessions: UpstreamDialer;
  readonly #http: HttpClient;
  readonly #credentials: Credentials | undefined;
  readonly #eras: RequestEras;
  readonly #requests: RequestLinks;
  readonly #keyOf: KeyOf;
  readonly #failures: FirstFailures;
  /** How the server takes an `initialize`. */
  readonly #sessionVerdicts: VerdictCache;
  /** Is it modern? A server of both eras is both. */
  readonly #requestVerdicts: VerdictCache;
  #isClosed = false;

  constructor(options: DetectedRemoteOptions) {
    const { target, protocol, remote, credentials, deps, joinEras } = options;
    this.#credentials = credentials;
    this.name = showUrl(target.url);
    this.#protocol = remote.transport === 'sse' ? 'legacy' : protocol;
    this.#keyOf = createKeyOf(target.url, remote);
    this.#failures = new FirstFailures(deps);
    this.#sessionVerdicts = new VerdictCache(deps.clock);
    this.#requestVerdicts = new VerdictCache(deps.clock);
    this.#modern = createStatelessDialer({
      ...dialerOptions(options),
      doubted: (exchange) => this.#doubted(exchange),
    });
    // The one below the pool never asks for the modern era, and what it finds is of no use to the other.
    const pooled: RemoteOptions = { ...options, protocol: 'legacy' };
    this.#legacy = this.#createSessions(pooled, new VerdictCache(deps.clock), undefined);
    this.#joined = joinEras({ legacy: this.#legacy, modern: this.#modern });
    this.#sessions = this.#createSessions(options, this.#sessionVerdicts, this.#joined.legacyToModern);
    this.#http = createHttpClient(options);
    this.#eras = new RequestEras({
      ...options,
      url: target.url,
      http: this.#http,
      verdicts: this.#requestVerdicts,
      keyOf: this.#keyOf,
      failures: this.#failures,
    });
    this.#requests = new RequestLinks(this.#eras, this.#joined);
  }

  #createSessions(options: RemoteOptions, verdicts: VerdictCache, dialer: UpstreamDialer | undefined): UpstreamDialer {
    // To refuse `initialize` as modern servers do is proof, whatever was found out before.
    const found: ModernTurn['found'] = (key, revision) =>
      this.#requestVerdicts.store(key, { kind: 'modern', revision });
    const modern = this.#protocol === 'legacy' ? undefined : { dialer, found };
    return createSessionDialer(options, { verdicts, keyOf: this.#keyOf, failures: this.#failures, modern });
  }

  #doubted(exchange: Exchange | undefined): void {
    const key = this.#keyOf(exchange?.lane.headers);
    this.#sessionVerdicts.doubtModern(key);
    this.#requestVerdicts.doubtModern(key);
    if (exchange !== undefined) this.#requests.doubted(exchange);
  }

  dial(listener: ServerListener, context?: CallContext): UpstreamLink {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    if (context === undefined) {
      return (this.#protocol === 'modern' ? this.#joined.legacyToModern : this.#sessions).dial(listener);
    }
    switch (this.#protocol) {
      case 'legacy':
        return this.#joined.modernToLegacy.dial(listener, context);
      case 'modern':
        return this.#joined.modern.dial(listener, context);
      case 'auto':
        return this.#requests.dial(listener, context);
    }
  }

  /** The readiness of the server, as known from the latest attempts to reach it. */
  readiness(): Readiness {
    const known = [this.#sessions, this.#joined.modern, this.#joined.modernToLegacy, this.#eras];
    return known.map((part) => part.readiness()).find(({ state }) => state !== 'ready') ?? { state: 'ready' };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#credentials?.close();
    this.#requests.close(SHUTTING_DOWN);
    const { legacyToModern, modernToLegacy, modern } = this.#joined;
    await Promise.all([this.#sessions, legacyToModern, modernToLegacy, modern].map((way) => way.close()));
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
