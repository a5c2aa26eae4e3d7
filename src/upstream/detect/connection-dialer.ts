import type { Protocol } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { CARRIED_CAPABILITIES } from '../../mcp/vocabulary/client-declarations.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { type Era, LATEST_MODERN_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { Lane } from '../../relay/call.ts';
import { callsOverSessions } from '../../relay/dialer-adapters.ts';
import { logFailure } from '../../relay/log-failure.ts';
import type { CallServer } from '../../relay/modern-call.ts';
import type { DuplexTransport } from '../../relay/observer.ts';
import type {
  CallContext,
  CallDialer,
  Dialer,
  LinkOwner,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from '../../relay/ports.ts';
import { READY, type Readiness } from '../../relay/readiness.ts';
import type { Frame } from '../../wire/frame.ts';
import { asSessionDialer, type Connector, type CreateLifeCheck } from '../connection.ts';
import { describeRpcError } from './answer.ts';
import { AwaitedServer } from './awaited-server.ts';
import {
  ConnectionAttempts,
  type ConnectionAttemptsOptions,
  DISCOVER_TIMEOUT_MS,
  describeServer,
  HANDSHAKE_TIMEOUT_MS,
  initializeAs,
  OF_REQUEST,
  OF_SESSION,
} from './connection-attempts.ts';
import { untilAborted } from './deadline.ts';
import { DetectingLinks, dialWith } from './detecting-link.ts';
import { type Detection, type DetectOptions, detect, type Step } from './detection.ts';
import type { JoinEras, JoinedDialers, JoinedSessions } from './joined-dialers.ts';
import { OpenedConnections } from './opened-connections.ts';
import { Prober } from './prober.ts';
import type { Learned } from './verdict-cache.ts';

export interface ConnectionDialerOptions {
  /** Opens new connections to the server. Closed with the dialer. */
  readonly connections: Connector;
  /** Opens connections for sessions of legacy clients at a legacy server. Default: a new connection each. */
  readonly ownSessions?: OwnSessions;
  /** Checks the connections that serve several clients, or clients without sessions. Default: nothing does. */
  readonly lifeChecks?: Readonly<Record<Era, CreateLifeCheck>> | undefined;
  readonly transport: DuplexTransport;
  /**
   * `one-caller`: a connection begins with the headers of its first message, so it serves no other caller, and what the
   * server speaks is detected in the name of the caller that needs to know.
   */
  readonly connectionsFor: 'anybody' | 'one-caller';
  readonly protocol: Protocol;
  readonly joinEras: JoinEras;
  readonly learned: Learned;
  /** The bridge's description of itself, for its own requests. */
  readonly clientInfo: Implementation;
  readonly deps: Deps;
  /** Time limit for the answer to `server/discover`. The default is long enough for package runners. */
  readonly probeTimeoutMs?: number;
  readonly handshakeTimeoutMs?: number;
  /** True if detection starts at once instead of with the first client, for dialers that can prepare servers. */
  readonly isAwaited: boolean;
}

/** Pause before a server that could not be started ahead of its clients is tried again. */
const RETRY_MS = 1000;
/** Longest pause before another try, even if the server asks for more. */
const MAX_RETRY_AFTER_MS = 300_000;

/**
 * Serves clients of both eras at a server whose connections carry either era, such as a process on its pipes or a byte
 * stream. The server's era is detected with the first client of an era, in that client's era first, and on a connection
 * that then serves that client. Owns the connections and all dialers that it has made.
 */
export function createConnectionDialer(options: ConnectionDialerOptions): UpstreamDialer {
  return new ConnectionDialer(options);
}

/** Gives sessions of legacy clients at a legacy server their connections. */
export interface OwnSessions extends Pick<SessionDialer, 'dial'> {
  /** Called with the `initialize` of a client that got its connection otherwise. */
  note?(initialize: Frame): void;
}

interface AttemptsInName extends Pick<ConnectionAttemptsOptions, 'initialize' | 'signal'> {
  readonly prober: Prober;
  /** Headers of the client that needs the detection. */
  readonly headers: Lane['headers'];
}

/** Knowledge about one era of the server. It does not change as long as the server's command or address is the same. */
type Speaks = 'unknown' | 'yes' | 'no';

class ConnectionDialer implements UpstreamDialer {
  readonly #options: ConnectionDialerOptions;
  readonly #ownSessions: OwnSessions;
  readonly #legacy: OpenedConnections;
  readonly #modern: OpenedConnections;
  /** Created with the first client, since translators are a third of the code of a bridge. */
  #created: JoinedDialers | undefined;
  readonly #links = new DetectingLinks();
  readonly #awaited = new AwaitedServer(async (headers) => (await this.#findForRequests(headers)).callServer());
  /** Aborted when the dialer is closed. */
  readonly #closing = new AbortController();
  #speaksLegacy: Speaks;
  #speaksModern: Speaks;
  /** Detections under way. If both are started, the second waits for the first, which may be the answer to both. */
  #sessionDetection: Promise<void> | undefined;
  #detectingSinceMs = 0;
  #requestDetection: Promise<CallDialer> | undefined;
  #cancelRetry: (() => void) | undefined;

  constructor(options: ConnectionDialerOptions) {
    const { connections, protocol, deps } = options;
    this.#options = options;
    this.#ownSessions = options.ownSessions ?? asSessionDialer(connections);
    this.#legacy = new OpenedConnections(connections, deps.clock);
    this.#modern = new OpenedConnections(connections, deps.clock);
    this.#speaksLegacy = speaks('legacy', protocol);
    this.#speaksModern = speaks('modern', protocol);
    if (protocol !== 'auto') this.#learned(protocol);
    if (options.isAwaited && this.#joined.sessions.kind === 'shared') this.#await(this.#joined.sessions);
  }

  get #joined(): JoinedDialers {
    const { joinEras, lifeChecks } = this.#options;
    this.#created ??= joinEras({
      legacy: asSessionDialer(this.#legacy, lifeChecks?.legacy),
      modern: callsOverSessions(asSessionDialer(this.#modern, lifeChecks?.modern)),
      modernForOne: asSessionDialer(this.#modern),
    });
    return this.#created;
  }

  get name(): string {
    return this.#options.connections.name;
  }

  dial(listener: LinkOwner): UpstreamLink {
    this.#checkOpen();
    const { sessions } = this.#joined;
    return sessions.kind === 'own' ? this.#dialOwn(listener) : this.#dialShared(listener, sessions.dialer);
  }

  #checkOpen(): void {
    if (!this.#closing.signal.aborted) return;
    throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and starts no more servers.');
  }

  // ---- sessions of legacy clients

  #dialOwn(listener: LinkOwner): UpstreamLink {
    switch (this.#speaksLegacy) {
      case 'yes':
        return this.#ownSessions.dial(listener);
      case 'no':
        return this.#joined.legacyToModern.dial(listener);
      case 'unknown':
        return this.#meet(listener);
    }
  }

  /**
   * Treats a server as legacy, without asking anything before the client's `initialize`. The server's answer belongs to
   * the client, unless it is that of a modern server, whose connection is kept for modern requests.
   */
  #meet(listener: LinkOwner): UpstreamLink {
    const { connections, deps } = this.#options;
    const prober = new Prober(connections, deps.clock);
    // Until the client sends `initialize`, messages pass between the client and the server.
    const first = { kind: 'initialize-after', started: prober.open(listener) } as const;
    return this.#links.dial(listener, first, async (initialize, signal) => {
      this.#ownSessions.note?.(initialize.frame);
      const headers = initialize.call?.lane.headers;
      const attempts = this.#attempts({ prober, headers, signal, initialize: () => prober.try(initialize) });
      const leave = (): void => prober.close(toBridgeError(signal.reason));
      signal.addEventListener('abort', leave);
      let detection: Detection;
      try {
        detection = await detect(this.#asking(attempts, OF_SESSION, 'session', signal));
      } catch (thrown) {
        prober.close(toBridgeError(thrown));
        throw thrown;
      } finally {
        signal.removeEventListener('abort', leave);
      }
      if (detection.kind !== 'modern') {
        if (detection.kind === 'legacy') {
          this.#speaksLegacy = 'yes';
          this.#learned('legacy');
        }
        return prober;
      }
      this.#handOver(prober, this.#modern);
      this.#speaksLegacy = 'no';
      this.#speaksModern = 'yes';
      this.#learned('modern');
      return dialWith(this.#joined.legacyToModern, initialize);
    });
  }

  // ---- sessions of clients that share one server

  /**
   * Serves clients that share one server. The bridge makes their common handshake, so no client's `initialize` could be
   * the first attempt.
   */
  #dialShared(listener: LinkOwner, shared: SessionDialer): UpstreamLink {
    const known = this.#knownForShared(shared);
    if (known !== undefined) return known.dial(listener);
    return this.#links.dial(listener, { kind: 'any' }, async (_first, signal) => {
      const dialer = await untilAborted(this.#findForShared(shared), signal);
      return { open: (client) => dialer.dial(client), close: () => {} };
    });
  }

  #knownForShared(shared: SessionDialer): SessionDialer | undefined {
    if (this.#speaksLegacy === 'unknown') return undefined;
    return this.#speaksLegacy === 'yes' ? shared : this.#joined.legacyToModern;
  }

  #findForShared(shared: SessionDialer): Promise<SessionDialer> {
    const known = this.#knownForShared(shared);
    if (known !== undefined) return Promise.resolve(known);
    if (this.#sessionDetection === undefined) this.#detectingSinceMs = this.#options.deps.clock.now();
    this.#sessionDetection ??= this.#meetAlone().finally(() => {
      this.#sessionDetection = undefined;
    });
    return this.#sessionDetection.then(() => this.#findForShared(shared));
  }

  async #meetAlone(): Promise<void> {
    await this.#requestDetection?.catch(() => {});
    if (this.#speaksLegacy === 'unknown') await this.#askServer(OF_SESSION, 'session', undefined);
  }

  #await(shared: JoinedSessions & { readonly kind: 'shared' }): void {
    this.#findForShared(shared.dialer).then(
      (dialer) => shared.warm(dialer === shared.dialer ? 'legacy' : 'modern'),
      (thrown) => {
        // A detection that was aborted by closing the bridge is no failure.
        if (this.#closing.signal.aborted) return;
        const error = toBridgeError(thrown);
        logFailure(this.#options.deps.log, error, 'the server could not be started ahead of its clients');
        const pauseMs = Math.min(error.retryAfterMs ?? RETRY_MS, MAX_RETRY_AFTER_MS);
        this.#cancelRetry = this.#options.deps.clock.after(pauseMs, () => this.#await(shared));
      },
    );
  }

  // ---- requests of modern clients

  callServer(): CallServer {
    this.#checkOpen();
    return this.#knownForRequests?.callServer() ?? this.#awaited;
  }

  dialCalls(listener: LinkOwner, context: CallContext): UpstreamLink {
    this.#checkOpen();
    const known = this.#knownForRequests;
    if (known !== undefined) return known.dialCalls(listener, context);
    return this.#links.dial(listener, { kind: 'any' }, async ({ call }, signal) => {
      const dialer = await untilAborted(this.#findForRequests(call?.lane.headers), signal);
      return { open: (client) => dialer.dialCalls(client, context), close: () => {} };
    });
  }

  get #knownForRequests(): CallDialer | undefined {
    if (this.#speaksModern === 'unknown') return undefined;
    return this.#speaksModern === 'yes' ? this.#joined.modern : this.#joined.modernToLegacy;
  }

  /**
   * Finds the dialer for modern requests. One detection serves all that wait for it, even if the client that caused it
   * leaves.
   */
  #findForRequests(headers: Lane['headers']): Promise<CallDialer> {
    const known = this.#knownForRequests;
    if (known !== undefined) return Promise.resolve(known);
    // The server's treatment of one caller shows nothing about another.
    if (this.#options.connectionsFor === 'one-caller') return this.#askForAll(headers);
    this.#requestDetection ??= this.#askForAll(undefined).finally(() => {
      this.#requestDetection = undefined;
    });
    return this.#requestDetection;
  }

  async #askForAll(headers: Lane['headers']): Promise<CallDialer> {
    await this.#sessionDetection?.catch(() => {});
    const known = this.#knownForRequests;
    if (known !== undefined) return known;
    await this.#askServer(OF_REQUEST, 'era', headers);
    return this.#knownForRequests as CallDialer;
  }

  // ---- asking

  /** Asks on a connection of its own, which is kept for the first client if that can continue on it. */
  async #askServer(order: readonly Step[], goal: DetectOptions['goal'], headers: Lane['headers']): Promise<void> {
    const { connections, clientInfo, deps, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = this.#options;
    const { signal } = this.#closing;
    const initialize = initializeAs(clientInfo, CARRIED_CAPABILITIES, handshakeTimeoutMs);
    const prober = new Prober(connections, deps.clock, headers);
    const attempts = this.#attempts({ prober, headers, signal, initialize });
    try {
      const detection = await detect(this.#asking(attempts, order, goal, signal));
      switch (detection.kind) {
        case 'modern':
          this.#handOver(attempts.prober, this.#modern);
          return this.#found('modern');
        case 'legacy':
          await this.#leave(attempts, detection);
          return this.#found('legacy');
        case 'refused': {
          const said = describeRpcError(detection.error);
          const server = describeServer(this.#options.transport, this.name);
          throw new BridgeError('ERR_UPSTREAM_PROTOCOL', `${server} refused the handshake: ${said}.`);
        }
      }
    } catch (thrown) {
      // The next attempt opens another connection.
      await attempts.close(toBridgeError(thrown));
      throw thrown;
    }
  }

  /**
   * Ends the use of a connection to a legacy server. A server that was initialized there has the bridge as its
   * client, so the connection is of use only if all clients share it.
   */
  async #leave(attempts: ConnectionAttempts, { by, answer: { outcome } }: LegacyDetection): Promise<void> {
    const { prober } = attempts;
    const { sessions } = this.#joined;
    if (prober.end === undefined && by === 'discover') return this.#handOver(prober, this.#legacy);
    if (prober.end === undefined && sessions.kind === 'shared' && outcome.kind === 'result') {
      this.#legacy.offer(prober.release());
      if (sessions.startInitialized(asFields(outcome.result) ?? {})) return;
      this.#legacy.withdraw();
    }
    await attempts.close();
  }

  /**
   * Keeps the connection for the next client. A connection in the name of one caller is closed, because its purpose is
   * fulfilled.
   */
  #handOver(prober: Prober, next: OpenedConnections): void {
    if (prober.end === undefined && this.#options.connectionsFor === 'anybody') next.offer(prober.release());
    else prober.close();
  }

  #attempts({ prober, headers, signal, initialize }: AttemptsInName): ConnectionAttempts {
    const { connections, transport, clientInfo, deps, probeTimeoutMs = DISCOVER_TIMEOUT_MS } = this.#options;
    const connectAnew = (): Prober => new Prober(connections, deps.clock, headers);
    return new ConnectionAttempts(
      { name: connections.name, transport, clientInfo, probeTimeoutMs, initialize, connectAnew, signal },
      prober,
    );
  }

  #asking(
    attempts: ConnectionAttempts,
    order: readonly Step[],
    goal: DetectOptions['goal'],
    signal: AbortSignal,
  ): DetectOptions {
    const { clock, log } = this.#options.deps;
    return { attempts, order, goal, clock, log, signal };
  }

  /**
   * Records the era. A server of both eras that serves all clients on one connection is used in the era in which it was
   * found.
   */
  #found(era: Era): void {
    this.#learned(era);
    const isOnly = this.#joined.sessions.kind === 'shared';
    if (era === 'legacy') {
      if (isOnly) this.#speaksLegacy = 'yes';
      this.#speaksModern = 'no';
    } else {
      this.#speaksModern = 'yes';
      if (isOnly) this.#speaksLegacy = 'no';
    }
  }

  #learned(era: Era): void {
    const revision = era === 'modern' ? LATEST_MODERN_REVISION : undefined;
    this.#options.learned({ transport: this.#options.transport, era, revision });
  }

  // ---- as a dialer

  readiness(): Readiness {
    if (this.#sessionDetection !== undefined) {
      const error = new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`);
      return { state: 'starting', error, sinceMs: this.#detectingSinceMs, dialing: 'refused' };
    }
    if (this.#created === undefined) return this.#options.connections.readiness();
    const { modern, modernToLegacy, legacyToModern, sessions } = this.#created;
    const ofSessions = sessions.kind === 'shared' ? sessions.dialer : this.#options.connections;
    const known = [ofSessions, modern, modernToLegacy, legacyToModern];
    return known.map((dialer) => dialer.readiness()).find(({ state }) => state !== 'ready') ?? READY;
  }

  async close(): Promise<void> {
    this.#cancelRetry?.();
    this.#closing.abort(SHUTTING_DOWN);
    this.#links.close(SHUTTING_DOWN);
    const dialers = [...(this.#created === undefined ? [] : dialersOf(this.#created)), this.#legacy, this.#modern];
    await Promise.all(dialers.map((dialer) => dialer.close()));
    await this.#options.connections.close();
  }

  killNow(): void {
    this.#options.connections.killNow();
  }
}

function dialersOf({ legacyToModern, modernToLegacy, modern, sessions }: JoinedDialers): readonly Dialer[] {
  return [legacyToModern, modernToLegacy, modern, ...(sessions.kind === 'shared' ? [sessions.dialer] : [])];
}

function speaks(era: Exclude<Protocol, 'auto'>, protocol: Protocol): Speaks {
  if (protocol === 'auto') return 'unknown';
  return protocol === era ? 'yes' : 'no';
}

type LegacyDetection = Extract<Detection, { readonly kind: 'legacy' }>;
