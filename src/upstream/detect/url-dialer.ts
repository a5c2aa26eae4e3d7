/** Connects clients of either era to a server at a URL, whose era and transport are not known yet. */
import { dependsOnCaller } from '../../config/remote.ts';
import type { Protocol, UrlTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import type { Credentials } from '../../http/client/credentials.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { Call } from '../../relay/call.ts';
import type { CallServer } from '../../relay/modern-call.ts';
import type {
  CallContext,
  CallDialer,
  LinkOwner,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import { isOutOfReach, Reachability } from '../resilience/reachability.ts';
import { createStatelessDialer } from '../streamable-stateless/dialer.ts';
import { AwaitedServer } from './awaited-server.ts';
import { PROBE_TIMEOUT_MS } from './connection-attempts.ts';
import { Deadline, type Deciding, untilAborted } from './deadline.ts';
import { DetectingLinks } from './detecting-link.ts';
import { type Detection, detect } from './detection.ts';
import { FirstFailures } from './detection-errors.ts';
import type { JoinEras, JoinedDialers } from './joined-dialers.ts';
import { OwnAttempts } from './url-attempts.ts';
import {
  connectorOptions,
  createHttpClient,
  createSessionDialer,
  type ModernServers,
  type RemoteOptions,
  type UrlConnectorOptions,
} from './url-sessions.ts';
import { createKeyOf, type KeyOf, type Learned, type Verdict, VerdictCache } from './verdict-cache.ts';

export interface UrlDialerOptions extends RemoteOptions {
  readonly learned: Learned;
  readonly joinEras: JoinEras;
}

/**
 * Serves clients of both eras at a URL. The server's era and transport are detected with the first message of the first
 * client of an era, in that client's era first, so nothing is translated for a server of both eras. `--protocol` and
 * `--transport` restrict the detection. Owns the dialers that it has made.
 * @throws BridgeError ERR_CONFIG_OPTION if a certificate file cannot be used
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
  readonly #credentials: Pick<Credentials, 'close'> | undefined;
  readonly #reachability: Reachability;
  readonly #requests: UrlRequests;
  readonly #keyOf: KeyOf;
  readonly #failures: FirstFailures;
  /** Verdicts for sessions; see `SessionKnowledge`. */
  readonly #sessionVerdicts: VerdictCache;
  /** Verdicts for modern requests. A server of both eras is modern here and legacy for sessions. */
  readonly #requestVerdicts: VerdictCache;
  /**
   * Opens links for modern requests. A server that is known to be modern has its own dialer here, which looks up no
   * verdicts.
   */
  #calls: RequestDialer;
  #isClosed = false;

  constructor(given: UrlDialerOptions) {
    const { target, protocol, remote, credentials, trialClient, deps, joinEras, learned } = given;
    this.#credentials = credentials;
    this.name = showUrl(target.url);
    const attempt = trialClient && ((signal: AbortSignal) => this.#requests.try(signal));
    this.#reachability = new Reachability({ name: this.name, attempt, deps });
    const options = { ...given, reachability: this.#reachability };
    this.#protocol = remote.transport === 'sse' ? 'legacy' : protocol;
    if (protocol === 'modern') learned({ transport: 'streamable-http', era: 'modern', revision: undefined });
    this.#keyOf = createKeyOf(target.url, remote);
    this.#failures = new FirstFailures(deps);
    this.#sessionVerdicts = new VerdictCache(deps.clock, learned);
    this.#requestVerdicts = new VerdictCache(deps.clock, learned);
    this.#modern = createStatelessDialer({
      ...connectorOptions(options),
      doubted: (call) => this.#doubted(call),
    });
    // The pool never asks for the modern era, and its verdicts are of no use to the other era. Pings would keep alive
    // what no client holds open.
    const pooled: UrlConnectorOptions = { ...options, protocol: 'legacy', createLifeCheck: undefined };
    const pooledVerdicts = new VerdictCache(deps.clock, learned);
    this.#legacy = this.#createSessions(pooled, pooledVerdicts, { kind: 'refused' });
    this.#joined = joinEras({ legacy: this.#legacy, modern: this.#modern, modernForOne: this.#modern });
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
      isOneServer: !dependsOnCaller(remote),
      foundHttpSse: (key, verdict) => pooledVerdicts.store(key, verdict),
      foundForAll: (verdict) => this.#goBy(verdict),
    });
    this.#calls = this.#firstCalls();
  }

  /** Returns the dialer for modern requests while no verdict is known. */
  #firstCalls(): RequestDialer {
    switch (this.#protocol) {
      case 'legacy':
        return this.#joined.modernToLegacy;
      case 'modern':
        return this.#joined.modern;
      case 'auto':
        return this.#requests;
    }
  }

  /** Uses a verdict for the requests of all callers. A legacy verdict expires, so it is looked up for each request. */
  #goBy({ kind }: Verdict): void {
    this.#calls = kind === 'modern' ? this.#joined.modern : this.#requests;
  }

  #createSessions(options: UrlConnectorOptions, verdicts: VerdictCache, modern: ModernServers): SessionDialer {
    return createSessionDialer(options, {
      verdicts,
      keyOf: this.#keyOf,
      failures: this.#failures,
      modern: this.#protocol === 'legacy' ? { kind: 'unasked' } : modern,
      // A server that refuses `initialize` as modern servers do is modern, even against an earlier verdict.
      foundModern: (key, revision) => this.#requestVerdicts.store(key, { kind: 'modern', revision }),
      failed: (key) => this.#requestVerdicts.doubt(key, 'legacy'),
    });
  }

  /**
   * Called when a server that counts as modern has refused a request as no modern server does. The next client detects
   * its era again.
   */
  #doubted(call: Call | undefined): void {
    const key = this.#keyOf(call?.lane.headers);
    this.#sessionVerdicts.doubt(key, 'modern');
    this.#requestVerdicts.doubt(key, 'modern');
    this.#calls = this.#firstCalls();
  }

  dial(listener: LinkOwner, session?: SessionState): UpstreamLink {
    this.#checkOpen();
    return (this.#protocol === 'modern' ? this.#joined.legacyToModern : this.#sessions).dial(listener, session);
  }

  dialCalls(listener: LinkOwner, context: CallContext): UpstreamLink {
    this.#checkOpen();
    return this.#calls.dialCalls(listener, context);
  }

  callServer(): CallServer {
    this.#checkOpen();
    return this.#calls.callServer();
  }

  #checkOpen(): void {
    if (!this.#isClosed) return;
    throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
  }

  /** The readiness of the server, as known from the latest attempts to reach it. */
  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#reachability.close();
    this.#credentials?.close();
    this.#requests.close(SHUTTING_DOWN);
    const { legacyToModern, modernToLegacy, modern } = this.#joined;
    await Promise.all([this.#sessions, legacyToModern, modernToLegacy, modern].map((dialer) => dialer.close()));
    await Promise.all([this.#legacy.close(), this.#modern.close()]);
    this.#http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#reachability.close();
    this.#credentials?.close();
    for (const dialer of [this.#sessions, this.#legacy, this.#modern]) dialer.killNow();
    this.#http.close();
  }
}

type RequestDialer = Pick<CallDialer, 'dialCalls' | 'callServer'>;

type Forwarded = Readonly<Record<string, string>> | undefined;

export interface UrlRequestsOptions {
  readonly target: UrlTarget;
  readonly http: HttpClient;
  readonly clientInfo: Implementation;
  readonly maxMessageBytes: number;
  readonly joined: Pick<JoinedDialers, 'modern' | 'modernToLegacy'>;
  /** Verdicts about modern requests. */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly failures: FirstFailures;
  readonly reachability: Reachability;
  /** True if all callers get the same server. Otherwise the verdict depends on the headers of the request. */
  readonly isOneServer: boolean;
  /** Called when a server was found that has the event stream of HTTP+SSE. */
  readonly foundHttpSse: (key: string, verdict: Verdict) => void;
  /** Called with a verdict for the requests of all callers, if they all get the same server. */
  readonly foundForAll: (verdict: Verdict) => void;
  readonly deps: Deps;
}

/**
 * Links for the requests of modern clients to a server at a URL, in either era. One `server/discover` serves all
 * requests that wait for a verdict. A server that did not answer as a modern one counts as legacy until no session can
 * be opened.
 */
export class UrlRequests {
  readonly #options: UrlRequestsOptions;
  readonly #links = new DetectingLinks();
  readonly #awaited = new AwaitedServer(async (headers) => (await this.#find(headers)).callServer());
  /** True if the server has answered once. Until then the address may be wrong, so `failures` logs the errors. */
  #wasThere = false;

  constructor(options: UrlRequestsOptions) {
    this.#options = options;
  }

  dialCalls(listener: LinkOwner, context: CallContext): UpstreamLink {
    const known = this.#known;
    if (known !== undefined) return known.dialCalls(listener, context);
    return this.#links.dial(listener, { kind: 'any' }, async ({ call }, signal) => {
      const dialer = await untilAborted(this.#find(call?.lane.headers), signal);
      return { open: (client) => dialer.dialCalls(client, context), close: () => {} };
    });
  }

  callServer(): CallServer {
    return this.#known?.callServer() ?? this.#awaited;
  }

  /** The dialer for the requests of all callers, if it is known. */
  get #known(): CallDialer | undefined {
    const { isOneServer, verdicts, keyOf } = this.#options;
    const verdict = isOneServer ? verdicts.find(keyOf(undefined)) : undefined;
    return verdict && this.#dialerFor(verdict);
  }

  #dialerFor(verdict: Verdict): CallDialer {
    const { joined, isOneServer, foundForAll } = this.#options;
    if (isOneServer) foundForAll(verdict);
    return verdict.kind === 'modern' ? joined.modern : joined.modernToLegacy;
  }

  /**
   * Rejects with a BridgeError if the server cannot be asked now. The detection goes on if the client that caused it
   * leaves, because others may wait for it.
   */
  async #find(forwarded: Forwarded): Promise<CallDialer> {
    const { verdicts, keyOf } = this.#options;
    return this.#dialerFor(await verdicts.resolve(keyOf(forwarded), () => this.#ask(forwarded)));
  }

  async #ask(forwarded: Forwarded): Promise<Verdict> {
    try {
      const detection = await this.#detect({ forwarded });
      this.#wasThere = true;
      if (detection.kind === 'modern') return { kind: 'modern', revision: detection.revision };
      if (detection.kind === 'refused') return { kind: 'legacy', by: 'discover', confidence: 'weak' };
      const { by, confidence } = detection;
      if (by === 'eventStream')
        this.#options.foundHttpSse(this.#options.keyOf(forwarded), { kind: 'legacy', by, confidence });
      return { kind: 'legacy', by: 'discover', confidence };
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (!this.#wasThere) this.#options.failures.tell(error);
      throw error;
    }
  }

  async #detect(deciding: Deciding): Promise<Detection> {
    const { reachability, target, http, clientInfo, maxMessageBytes, deps } = this.#options;
    const { clock, log } = deps;
    const { url } = target;
    const deadline = new Deadline(http, showUrl(url), deciding);
    const { signal } = deadline;
    const asked = { http, url, cookies: new SessionCookies(), forwarded: deciding.forwarded, maxMessageBytes };
    const attempts = new OwnAttempts({ target: asked, clientInfo, timeoutMs: PROBE_TIMEOUT_MS, signal });
    try {
      const detection = await detect({ attempts, order: ['discover'], goal: 'era', clock, log, signal });
      reachability.note(undefined);
      return detection;
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (isOutOfReach(error)) reachability.note(error);
      throw error;
    } finally {
      deadline.clear();
    }
  }

  /** Tries whether the server can be reached. Rejects if it is out of reach. */
  async try(signal: AbortSignal): Promise<void> {
    const { reachability } = this.#options;
    try {
      await this.#detect({ forwarded: undefined, signal });
    } catch (thrown) {
      if (isOutOfReach(toBridgeError(thrown))) throw thrown;
      // Another error is an answer, such as the demand for a login.
      reachability.note(undefined);
    }
  }

  close(reason: BridgeError): void {
    this.#links.close(reason);
  }
}
