import type { RemoteConfig } from '../../config/remote.ts';
import type { Protocol, UrlTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { CallerCredentials } from '../../http/client/caller-credentials.ts';
import { HttpClient } from '../../http/client/client.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import type { Credentials } from '../../http/client/credentials.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { ClientMessage } from '../../relay/call.ts';
import type { MessageTaps } from '../../relay/message-tap.ts';
import type { LinkOwner, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import { asSessionDialer, type Connector, type CreateGuard, type CreateLifeCheck } from '../connection.ts';
import { createHttpSseConnector } from '../http-sse/connector.ts';
import type { RemoteConnectorOptions, RemoteTracing } from '../remote/remote-environment.ts';
import type { Reachability } from '../resilience/reachability.ts';
import { createStreamableConnector } from '../streamable-session/connector.ts';
import { PROBE_TIMEOUT_MS } from './connection-attempts.ts';
import { Deadline } from './deadline.ts';
import { DetectingLinks, dialWith, type FoundLink } from './detecting-link.ts';
import { type Detection, detect, LEGACY_FIRST, type Step } from './detection.ts';
import type { FirstFailures } from './detection-errors.ts';
import { TrialAttempts } from './url-attempts.ts';
import type { KeyOf, Verdict, VerdictCache } from './verdict-cache.ts';

export interface RemoteOptions {
  readonly target: UrlTarget;
  readonly protocol: Protocol;
  readonly remote: RemoteConfig;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  /** The bridge's name in its own requests, and in the User-Agent. */
  readonly clientInfo: Implementation;
  /** Credentials that all clients share, or a set for each caller. */
  readonly credentials: Credentials | CallerCredentials | undefined;
  /** Checks the connections of sessions. Default: nothing does. */
  readonly createLifeCheck?: CreateLifeCheck | undefined;
  /** Decides which messages pass. Default: all do. */
  readonly createGuard?: CreateGuard | undefined;
  /** Sees what passes between the bridge and the server. Default: nothing is recorded. */
  readonly taps?: MessageTaps | undefined;
  /** Client name for trials of a server that could not be reached. Default: only clients try it. */
  readonly trialClient?: Implementation | undefined;
  readonly deps: Deps;
}

/** The options of the connectors of a server at a URL, which share what is known of its reachability. */
export interface UrlConnectorOptions extends RemoteOptions {
  readonly reachability: Reachability;
}

/** The treatment of a session whose server turns out to be modern. */
export type ModernServers =
  /** The session continues there, translated. */
  | { readonly kind: 'translated'; readonly dialer: SessionDialer }
  /** The client gets an error. */
  | { readonly kind: 'refused' }
  /** The modern era is not asked for. */
  | { readonly kind: 'unasked' };

export interface SessionKnowledge {
  /** Verdicts for sessions: the transport on which the server accepts an `initialize`, or its modern revision. */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly failures: FirstFailures;
  readonly modern: ModernServers;
  /** Called when the server has shown that it is modern. */
  readonly foundModern: (key: string, revision: ModernRevisionId) => void;
  /** Called when no session could be opened. */
  readonly failed: (key: string) => void;
}

/**
 * Opens connections to a server at a URL for sessions, each of which begins with its client's `initialize`. The
 * transport is detected with the first message of the first client, unless `--transport` states it.
 * @throws BridgeError ERR_CONFIG_OPTION if a certificate file cannot be used
 */
export function createSessionDialer(options: UrlConnectorOptions, knowledge: SessionKnowledge): SessionDialer {
  const { protocol, remote } = options;
  const { transport } = remote;
  if (transport === 'sse') {
    return asSessionDialer(createHttpSseConnector(connectorOptions(options)));
  }
  if (transport === 'streamable-http' && protocol === 'legacy' && knowledge.modern.kind === 'unasked') {
    return asSessionDialer(createStreamableConnector(connectorOptions(options)));
  }
  return new UrlSessions(options, knowledge);
}

export function connectorOptions(options: UrlConnectorOptions): RemoteConnectorOptions {
  const { target, remote, maxMessageBytes, tracing, createLifeCheck, createGuard, taps, reachability, deps } = options;
  const { timeouts } = remote;
  const http = createHttpClient(options);
  const scanner = new EnvelopeScanner();
  const watching = { createLifeCheck, createGuard, taps, reachability };
  return { url: target.url, http, timeouts, maxMessageBytes, tracing, scanner, ...watching, deps };
}

export function createHttpClient({
  target,
  remote,
  clientInfo,
  credentials,
  deps,
}: Pick<RemoteOptions, 'target' | 'remote' | 'clientInfo' | 'credentials' | 'deps'>): HttpClient {
  const { headers, bearerTokenFile, tls, proxyEnv } = remote;
  const userAgent = `${clientInfo.name}/${clientInfo.version}`;
  const { socketPath } = target;
  return new HttpClient({
    ...{ headers, bearerTokenFile, credentials, userAgent },
    ...{ tls, proxyEnv, socketPath },
    clock: deps.clock,
  });
}

/** Ends a shared detection that has no result for the other clients that wait for it. */
class NothingFound extends Error {}

/** A client's first request, and the state of its session. */
interface FirstRequest extends ClientMessage {
  readonly session: SessionState | undefined;
}

/**
 * Binds the state of a session to a connector. The server accepts only one of several attempts, and only that one
 * writes the state.
 */
function bindSession(connector: Connector, session: SessionState | undefined): Connector {
  return {
    name: connector.name,
    connect: () => connector.connect(session),
    readiness: () => connector.readiness(),
    close: () => connector.close(),
    killNow: () => connector.killNow(),
  };
}

function dialBound(dialer: SessionDialer, initialize: FirstRequest): FoundLink {
  return dialWith({ dial: (listener) => dialer.dial(listener, initialize.session) }, initialize);
}

type Found = Detection & { readonly link: FoundLink };

class UrlSessions implements SessionDialer {
  readonly name: string;
  readonly #options: UrlConnectorOptions;
  readonly #knowledge: SessionKnowledge;
  readonly #http: HttpClient;
  readonly #streamable: Connector;
  readonly #httpSse: Connector;
  readonly #steps: readonly Step[];
  readonly #links = new DetectingLinks();
  /**
   * True if the server was found once. Until then the address may be wrong, so `failures` logs the errors. A later loss
   * is logged where it happens.
   */
  #wasThere = false;
  #isClosed = false;

  constructor(options: UrlConnectorOptions, knowledge: SessionKnowledge) {
    const shared = connectorOptions(options);
    this.name = showUrl(options.target.url);
    this.#options = options;
    this.#knowledge = knowledge;
    this.#http = shared.http;
    this.#streamable = createStreamableConnector(shared);
    // A separate HTTP client, because each dialer closes its own.
    this.#httpSse = createHttpSseConnector({ ...shared, http: createHttpClient(options) });
    this.#steps = LEGACY_FIRST.filter(
      (step) =>
        !(step === 'discover' && options.protocol === 'legacy') &&
        !(step === 'eventStream' && options.remote.transport === 'streamable-http'),
    );
  }

  dial(listener: LinkOwner, session?: SessionState): UpstreamLink {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    // A session that has begun elsewhere is continued at a server that remembers it.
    if (session?.offer !== undefined) return asSessionDialer(this.#streamable).dial(listener, session);
    return this.#links.dial(listener, { kind: 'initialize' }, (frame, signal) =>
      this.#find({ ...frame, session }, signal),
    );
  }

  /**
   * Sends the client's `initialize` as the first attempt, so that a server which accepts it is asked nothing else.
   * Clients that come before anything is known wait for the first of them.
   */
  async #find(initialize: FirstRequest, signal: AbortSignal): Promise<FoundLink> {
    const { verdicts, keyOf } = this.#knowledge;
    const key = keyOf(initialize.call?.lane.headers);
    for (;;) {
      signal.throwIfAborted();
      const known = verdicts.find(key);
      if (known !== undefined) return this.#follow(key, known, initialize, signal);
      let found: Found | undefined;
      try {
        await verdicts.resolve(key, async () => {
          found = await this.#detectForAll(key, initialize, signal);
          if (found.kind === 'refused') throw new NothingFound();
          return toVerdict(found);
        });
      } catch (thrown) {
        if (!(thrown instanceof NothingFound)) throw thrown;
      }
      if (found !== undefined) return found.link;
    }
  }

  /** Begins with the known transport. The other steps still follow if it fails, because servers change. */
  async #follow(key: string, known: Verdict, initialize: FirstRequest, signal: AbortSignal): Promise<FoundLink> {
    const { modern, verdicts } = this.#knowledge;
    if (known.kind === 'modern' && modern.kind === 'translated') return dialBound(modern.dialer, initialize);
    const isStream = known.kind === 'legacy' && known.by === 'eventStream';
    const steps = isStream ? eventStreamFirst(this.#steps) : this.#steps;
    const found = await this.#detect(key, initialize, signal, steps);
    if (found.kind !== 'refused' && !isSame(found, known)) verdicts.store(key, toVerdict(found));
    return found.link;
  }

  /** Detects for all clients that wait. If the one whose `initialize` is used leaves, the others start again. */
  async #detectForAll(key: string, initialize: FirstRequest, signal: AbortSignal): Promise<Found> {
    try {
      return await this.#detect(key, initialize, signal, this.#steps);
    } catch (thrown) {
      throw signal.aborted ? new NothingFound() : thrown;
    }
  }

  async #detect(key: string, initialize: FirstRequest, signal: AbortSignal, order: readonly Step[]): Promise<Found> {
    const { target, deps, clientInfo, maxMessageBytes } = this.#options;
    const { clock, log } = deps;
    const forwarded = initialize.call?.lane.headers;
    const deadline = new Deadline(this.#http, this.name, { forwarded, signal });
    const attempts = new TrialAttempts({
      target: { http: this.#http, url: target.url, cookies: new SessionCookies(), forwarded, maxMessageBytes },
      clientInfo,
      timeoutMs: PROBE_TIMEOUT_MS,
      signal: deadline.signal,
      request: initialize,
      streamable: bindSession(this.#streamable, initialize.session),
      httpSse: this.#httpSse,
    });
    try {
      const detection = await detect({ attempts, order, goal: 'session', clock, log, signal: deadline.signal });
      this.#wasThere = true;
      log.debug({ found: detection.kind === 'legacy' ? detection.by : detection.kind }, 'found the server');
      if (detection.kind === 'modern') {
        return { ...detection, link: this.#turnModern(key, initialize, detection.revision) };
      }
      const prober = attempts.take();
      if (prober === undefined) throw new Error('a transport was found without a connection');
      return { ...detection, link: prober };
    } catch (thrown) {
      if (!signal.aborted) this.#failed(key, toBridgeError(thrown));
      throw thrown;
    } finally {
      deadline.clear();
      void attempts.close();
    }
  }

  #failed(key: string, error: BridgeError): void {
    this.#knowledge.failed(key);
    if (!this.#wasThere) this.#knowledge.failures.tell(error);
  }

  /** Continues at a modern server, which has not accepted the client's `initialize`. The translator answers it. */
  #turnModern(key: string, initialize: FirstRequest, revision: ModernRevisionId): FoundLink {
    const { modern, foundModern } = this.#knowledge;
    if (modern.kind !== 'unasked') foundModern(key, revision);
    if (modern.kind === 'translated') return dialBound(modern.dialer, initialize);
    throw modernOnlyError(this.name, revision);
  }

  readiness(): Readiness {
    return this.#options.reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#links.close(SHUTTING_DOWN);
    await Promise.all([this.#streamable.close(), this.#httpSse.close()]);
  }

  killNow(): void {
    this.#isClosed = true;
    this.#streamable.killNow();
    this.#httpSse.killNow();
  }
}

const eventStreamFirst = (steps: readonly Step[]): readonly Step[] => [...new Set<Step>(['eventStream', ...steps])];

type Certain = Exclude<Detection, { readonly kind: 'refused' }>;

function toVerdict(found: Certain): Verdict {
  return found.kind === 'modern'
    ? { kind: 'modern', revision: found.revision }
    : { kind: 'legacy', by: found.by, confidence: found.confidence };
}

function isSame(found: Certain, known: Verdict): boolean {
  return found.kind === 'modern' || known.kind === 'modern' ? found.kind === known.kind : found.by === known.by;
}

/** Returns the error for a client of the legacy era at a server that does not speak it. */
function modernOnlyError(name: string, revision: string): BridgeError {
  const message =
    `The server at ${name} speaks only MCP ${revision} and later, without a handshake, but was to be spoken to with one. ` +
    'Try again, without --protocol legacy and --transport if they are given.';
  return new BridgeError('ERR_UPSTREAM_REVISION', message, { data: { supported: [revision] } });
}
