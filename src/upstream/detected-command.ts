import type { Protocol } from '../config.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../errors.ts';
import { classifyInitialize } from '../mcp/classify/probe-answer.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { canonicalCapabilities } from '../mcp/translate/capabilities.ts';
import { clientInfoOf } from '../mcp/vocabulary/client-info.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../mcp/vocabulary/payload.ts';
import { type Era, LATEST_LEGACY_REVISION } from '../mcp/vocabulary/revisions.ts';
import { logFailure } from '../relay/log-failure.ts';
import type { CallContext, Readiness, ServerListener, UpstreamDialer, UpstreamLink } from '../relay/ports.ts';
import { isModernServer } from './detect/ask/ask-modern.ts';
import { LinkClient } from './detect/ask/link-client.ts';
import { detectStdio, HANDSHAKE_TIMEOUT_MS, PROBE_TIMEOUT_MS } from './detect/attempts/detect-stdio.ts';
import { untilAborted } from './detect/attempts/wait.ts';
import type { FindLink, Request } from './detect/found-link.ts';
import type { JoinEras, JoinedDialers } from './detect/joined-dialers.ts';
import { DetectingLink } from './detect/sessions/detecting-link.ts';
import { FirstSession } from './detect/sessions/first-session.ts';
import { StartedProcesses } from './detect/sessions/started-processes.ts';
import { VerdictCache } from './detect/verdict-cache.ts';

export interface DetectedCommandOptions {
  /** Each connection is a process of its own. Closed with the dialer. */
  readonly processes: UpstreamDialer;
  readonly protocol: Protocol;
  readonly joinEras: JoinEras;
  /** The name that the bridge gives itself when it asks on its own account. */
  readonly clientInfo: Implementation;
  readonly deps: Deps;
  /** Silence of a server allowed after `server/discover`; the default gives package runners their time. */
  readonly probeTimeoutMs?: number;
  readonly handshakeTimeoutMs?: number;
  /** Find out at once instead of with the first client, for dialers that can be made ready. */
  readonly isAwaited?: boolean;
}

/** A server that could not be started ahead of its clients is tried again after this long. */
const RETRY_MS = 1000;

/**
 * A server that is started, for clients of both eras. What it speaks is found out with the first client of an era, in
 * that client's era first, and with a process that then serves that client. Owns the processes and all dialers it made.
 */
export function createDetectedCommandDialer(options: DetectedCommandOptions): UpstreamDialer {
  return new DetectedCommand(options);
}

/** Whether the server speaks an era. It does not change while the command is the same. */
type Speaks = 'unknown' | 'yes' | 'no';

class DetectedCommand implements UpstreamDialer {
  readonly #options: DetectedCommandOptions;
  readonly #legacy: StartedProcesses;
  readonly #modern: StartedProcesses;
  readonly #joined: JoinedDialers;
  /** Servers that exit at a question of the other era are not asked again. */
  readonly #verdicts: VerdictCache;
  readonly #links = new Set<DetectingLink>();
  #speaksLegacy: Speaks;
  #speaksModern: Speaks;
  #detection: Promise<UpstreamDialer> | undefined;
  #greeting: Promise<UpstreamDialer> | undefined;
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(options: DetectedCommandOptions) {
    const { processes, protocol, joinEras, deps } = options;
    this.#options = options;
    this.#legacy = new StartedProcesses(processes, deps.clock);
    this.#modern = new StartedProcesses(processes, deps.clock);
    this.#joined = joinEras({ legacy: this.#legacy, modern: this.#modern });
    this.#verdicts = new VerdictCache(deps.clock);
    this.#speaksLegacy = speaks('legacy', protocol);
    this.#speaksModern = speaks('modern', protocol);
    if (options.isAwaited === true) this.#await();
  }

  get name(): string {
    return this.#options.processes.name;
  }

  dial(listener: ServerListener, context?: CallContext): UpstreamLink {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and starts no more servers.');
    }
    return context === undefined ? this.#dialSession(listener) : this.#dialRequests(listener, context);
  }

  // ---- sessions of legacy clients

  #dialSession(listener: ServerListener): UpstreamLink {
    if (this.#joined.legacy !== undefined) return this.#dialShared(listener);
    const { processes, clientInfo, deps, probeTimeoutMs = PROBE_TIMEOUT_MS } = this.#options;
    switch (this.#speaksLegacy) {
      case 'yes':
        return processes.dial(listener);
      case 'no':
        return this.#joined.legacyToModern.dial(listener);
      case 'unknown':
        return new FirstSession({
          processes,
          listener,
          clientInfo,
          clock: deps.clock,
          probeTimeoutMs,
          accepted: () => {
            this.#speaksLegacy = 'yes';
          },
          turnModern: (connection) => this.#turnModern(connection, listener),
        });
    }
  }

  /** One handshake serves all, so the bridge makes it, and no client's `initialize` could be the first attempt. */
  #dialShared(listener: ServerListener): UpstreamLink {
    const known = this.#sharedWay;
    if (known !== undefined) return known.dial(listener);
    return this.#dialFound(listener, async (_first, signal) => {
      const way = await untilAborted(this.#greet(), signal);
      return { open: (client) => way.dial(client), drop: () => {} };
    });
  }

  get #sharedWay(): UpstreamDialer | undefined {
    if (this.#speaksLegacy === 'unknown') return undefined;
    return this.#speaksLegacy === 'yes' ? this.#joined.legacy?.dialer : this.#joined.legacyToModern;
  }

  #greet(): Promise<UpstreamDialer> {
    const known = this.#sharedWay;
    if (known !== undefined) return Promise.resolve(known);
    this.#greeting ??= this.#greetAs(this.#joined.legacy?.capabilities ?? {}).finally(() => {
      this.#greeting = undefined;
    });
    return this.#greeting;
  }

  async #greetAs(capabilities: Fields): Promise<UpstreamDialer> {
    await this.#detection?.catch(() => {});
    const known = this.#sharedWay;
    if (known !== undefined) return known;
    const { processes, clientInfo, deps } = this.#options;
    const { probeTimeoutMs = PROBE_TIMEOUT_MS, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = this.#options;
    const connection = new LinkClient(processes, deps.clock);
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
    const { outcome, error, words } = await connection.request(INITIALIZE, params, handshakeTimeoutMs);
    if (outcome.kind === 'result' && classifyInitialize(outcome).kind === 'accepted') {
      this.#found('legacy');
      this.#legacy.offer(connection, { params, result: asFields(outcome.result) ?? {} });
      return this.#joined.legacy?.dialer ?? processes;
    }
    if (await isModernServer(outcome, { connection, clientInfo, probeTimeoutMs })) {
      this.#found('modern');
      this.#modern.offer(connection);
      return this.#joined.legacyToModern;
    }
    const failure = error ?? refusedError(this.name, words);
    connection.close(failure);
    // The next attempt starts another one.
    await connection.gone;
    throw failure;
  }

  /** A server of both eras that one process serves everybody with is left in the one it was met in. */
  #found(era: Era): void {
    const isOnly = this.#joined.legacy !== undefined;
    if (era === 'legacy') {
      this.#speaksLegacy = 'yes';
      this.#speaksModern = 'no';
    } else {
      this.#speaksModern = 'yes';
      if (isOnly) this.#speaksLegacy = 'no';
    }
  }

  #await(): void {
    this.#greet().then(
      (dialer) => this.#joined.warm?.(dialer === this.#joined.legacyToModern ? 'modern' : 'legacy'),
      (thrown) => {
        // It was ended with the bridge, and nobody waits for it.
        if (this.#isClosed) return;
        const error = toBridgeError(thrown);
        logFailure(this.#options.deps.log, error, 'the server could not be started ahead of its clients');
        this.#cancelRetry = this.#options.deps.clock.after(error.retryAfterMs ?? RETRY_MS, () => this.#await());
      },
    );
  }

  #turnModern(connection: LinkClient, listener: ServerListener): UpstreamLink {
    this.#speaksLegacy = 'no';
    this.#speaksModern = 'yes';
    this.#modern.offer(connection);
    return this.#joined.legacyToModern.dial(listener);
  }

  // ---- requests of modern clients

  #dialRequests(listener: ServerListener, context: CallContext): UpstreamLink {
    const known = this.#knownWay;
    if (known !== undefined) return known.dial(listener, context);
    return this.#dialFound(listener, async (first, signal) => {
      const way = await this.#findWay(context, first, signal);
      return { open: (client) => way.dial(client, context), drop: () => {} };
    });
  }

  #dialFound(listener: ServerListener, findLink: FindLink): UpstreamLink {
    const link = new DetectingLink({ listener, first: 'any', findLink, left: () => void this.#links.delete(link) });
    this.#links.add(link);
    return link;
  }

  get #knownWay(): UpstreamDialer | undefined {
    if (this.#speaksModern === 'unknown') return undefined;
    return this.#speaksModern === 'yes' ? this.#joined.modern : this.#joined.modernToLegacy;
  }

  /** One process shows it to all who wait; whose client leaves meanwhile does not matter. */
  #findWay(context: CallContext, first: Request, signal: AbortSignal): Promise<UpstreamDialer> {
    const known = this.#knownWay;
    if (known !== undefined) return Promise.resolve(known);
    const { legacy } = this.#joined;
    const { clientInfo } = this.#options;
    const client = legacy === undefined ? clientOf(context, first, clientInfo) : { ...legacy, clientInfo };
    this.#detection ??= this.#detect(client).finally(() => {
      this.#detection = undefined;
    });
    return untilAborted(this.#detection, signal);
  }

  async #detect({ capabilities, clientInfo }: ClientToTell): Promise<UpstreamDialer> {
    await this.#greeting?.catch(() => {});
    const known = this.#knownWay;
    if (known !== undefined) return known;
    const { processes, deps } = this.#options;
    const { clock, log } = deps;
    const { probeTimeoutMs = PROBE_TIMEOUT_MS, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = this.#options;
    const detection = await detectStdio({
      dialer: processes,
      clientInfo,
      capabilities,
      clock,
      log,
      verdicts: this.#verdicts,
      key: this.name,
      probeTimeoutMs,
      handshakeTimeoutMs,
    });
    this.#found(detection.era);
    if (detection.era === 'modern') {
      this.#modern.offer(detection.connection);
      return this.#joined.modern;
    }
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
    this.#legacy.offer(detection.connection, { params, result: asFields(detection.handshake) ?? {} });
    return this.#joined.modernToLegacy;
  }

  // ---- as a dialer

  readiness(): Readiness {
    if (this.#greeting !== undefined) {
      return { state: 'refused', error: new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`) };
    }
    const { modern, modernToLegacy, legacyToModern, legacy } = this.#joined;
    const known = [legacy?.dialer ?? this.#options.processes, modern, modernToLegacy, legacyToModern];
    return known.map((dialer) => dialer.readiness()).find(({ state }) => state !== 'ready') ?? { state: 'ready' };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    for (const link of [...this.#links]) link.close(SHUTTING_DOWN);
    const { legacyToModern, modernToLegacy, modern, legacy } = this.#joined;
    const dialers = [legacyToModern, modernToLegacy, modern, legacy?.dialer, this.#legacy, this.#modern];
    await Promise.all(dialers.map((dialer) => dialer?.close()));
    await this.#options.processes.close();
  }

  killNow(): void {
    this.#options.processes.killNow();
  }
}

function speaks(era: Exclude<Protocol, 'auto'>, protocol: Protocol): Speaks {
  if (protocol === 'auto') return 'unknown';
  return protocol === era ? 'yes' : 'no';
}

function refusedError(name: string, words: string): BridgeError {
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `Server "${name}" refused the handshake: ${words}.`);
}

/** What a server that turns out legacy has been told. */
interface ClientToTell {
  readonly capabilities: Fields;
  readonly clientInfo: Implementation;
}

/** The client that came first: a server that turns out legacy is told of it, and can then serve it. */
function clientOf({ metadata }: CallContext, { frame }: Request, fallback: Implementation): ClientToTell {
  const known = metadata ?? readRequestMetadata(frame);
  if ('fault' in known) return { capabilities: {}, clientInfo: fallback };
  const { capabilities } = canonicalCapabilities(known.capabilities);
  return { capabilities, clientInfo: clientInfoOf(known.clientInfo, fallback) };
}
