import { BridgeError, MAY_BE_FRAMED } from '../../errors.ts';
import { createDiscoverRequest } from '../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { DuplexTransport } from '../../relay/observer.ts';
import type { Answer } from './answer.ts';
import { untilAborted } from './deadline.ts';
import type { Attempts, Step } from './detection.ts';
import type { Attempt } from './detection-errors.ts';
import type { Prober } from './prober.ts';

/** Steps for a session: `initialize` first, and `server/discover` only if that is refused. */
export const OF_SESSION: readonly Step[] = ['initialize', 'discover'];
/**
 * Steps for a modern request. A silent server may still be starting. When it has refused `initialize`, it can be asked
 * again.
 */
export const OF_REQUEST: readonly Step[] = ['discover', 'initialize', 'discover'];

/** Time limit of a question over HTTP, where a server has to answer. */
export const PROBE_TIMEOUT_MS = 10_000;
/**
 * Time limit of `server/discover` on a connection. Many legacy servers do not answer it: their first modern client
 * waits this long, and should not wait 5 s. A modern server may take longer to start, because a package runner
 * downloads it. It answers `initialize` with an error, and is asked once more.
 */
export const DISCOVER_TIMEOUT_MS = 4_000;
/** Time limit of `initialize`, whose answer is needed in any case. */
export const HANDSHAKE_TIMEOUT_MS = 60_000;

export interface ConnectionAttemptsOptions {
  /** The name of the server. */
  readonly name: string;
  readonly transport: DuplexTransport;
  readonly clientInfo: Implementation;
  /** Time limit for the answer to `server/discover`. */
  readonly probeTimeoutMs: number;
  /** Sends `initialize` on a connection. */
  readonly initialize: (prober: Prober) => Promise<Answer>;
  /** Opens another connection to the same server. Throws what `Connector.connect` throws. */
  readonly connectAnew: () => Prober;
  readonly signal: AbortSignal;
}

/** Asks on a connection. If the server ends the connection at a question, another one is opened. */
export class ConnectionAttempts implements Attempts {
  readonly carrier = 'pipe';
  readonly name: string;
  readonly #options: ConnectionAttemptsOptions;
  #prober: Prober;
  /** True if the connection got a message at which a server may end it. */
  #wasProbed = false;
  /** True while no question got an answer. */
  #isSilent = true;

  constructor(options: ConnectionAttemptsOptions, prober: Prober) {
    this.name = options.name;
    this.#options = options;
    this.#prober = prober;
  }

  /** The latest prober. Its connection may have ended. */
  get prober(): Prober {
    return this.#prober;
  }

  async ask(step: Step, revision: string): Promise<Answer> {
    const asked = step === 'discover' ? this.#discover(revision) : this.#initialize();
    const answer = await untilAborted(asked, this.#options.signal);
    if (answer.outcome.kind !== 'silence') this.#isSilent = false;
    return answer;
  }

  #discover(revision: string): Promise<Answer> {
    const { clientInfo, probeTimeoutMs } = this.#options;
    this.#wasProbed = true;
    const id = this.#prober.takeId();
    return this.#prober.ask(createDiscoverRequest({ id, revision, clientInfo }), probeTimeoutMs);
  }

  /**
   * Sends `initialize`. If the server exited or disconnected, it may have done so at an earlier message that it does
   * not know, so `initialize` is sent once more on a new connection without such a message.
   */
  async #initialize(): Promise<Answer> {
    if (this.#prober.end !== undefined) await this.#startAnew();
    const answer = await this.#options.initialize(this.#prober);
    const isGone = answer.outcome.kind === 'exited' || answer.outcome.kind === 'lost';
    if (!isGone || !this.#wasProbed) return answer;
    await this.#startAnew();
    return this.#options.initialize(this.#prober);
  }

  /**
   * Opens another connection, but not before the first process is gone, because it may hold something that only one
   * process can have.
   */
  async #startAnew(): Promise<void> {
    const { connectAnew, signal } = this.#options;
    await this.#prober.gone;
    signal.throwIfAborted();
    this.#wasProbed = false;
    this.#prober = connectAnew();
  }

  errorOf({ error }: Answer): BridgeError | undefined {
    return error;
  }

  nothingFound(tried: readonly Attempt[]): BridgeError {
    // The handshake of the connection was answered over HTTP, so there was nothing to ask on. That error says more.
    const { end } = this.#prober;
    if (typeof end?.data?.status === 'number') return end;
    const attempts = tried.map(({ request, saw }) => ({ request, saw }));
    const shown = attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
    const { transport } = this.#options;
    const runs = transport === 'stdio' ? 'runs' : 'takes connections';
    const server = describeServer(transport, this.name);
    const message = `${server} ${runs}, but does not speak MCP of any era known here. Tried: ${shown}.${this.#isSilent && transport === 'stdio' ? ` ${MAY_BE_FRAMED}` : ''}`;
    return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts } });
  }

  /** Ends the connection. Resolves when nothing is left of a process behind it. */
  async close(reason?: BridgeError): Promise<void> {
    this.#prober.close(reason);
    await this.#prober.gone;
  }
}

/** Returns the name of the server as the beginning of a sentence. */
export function describeServer(transport: DuplexTransport, name: string): string {
  return transport === 'stdio' ? `Server "${name}"` : `The server at ${name}`;
}

/** Returns a function that sends an `initialize` of the bridge itself. */
export function initializeAs(
  clientInfo: Implementation,
  capabilities: Fields,
  timeoutMs: number,
): ConnectionAttemptsOptions['initialize'] {
  const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
  return (prober) => prober.request(INITIALIZE, params, timeoutMs);
}
