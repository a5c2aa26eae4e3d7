import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { createDiscoverRequest } from '../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { SessionDialer } from '../../relay/ports.ts';
import type { Answer } from './answer.ts';
import { untilAborted } from './deadline.ts';
import type { Attempts, Step } from './detection.ts';
import type { Attempt } from './detection-errors.ts';
import { LinkClient } from './link-client.ts';

/** A session is met with `initialize`, and looked at only if that is refused. */
export const OF_SESSION: readonly Step[] = ['initialize', 'discover'];
/** A process that is silent may be starting still; by the time it has refused `initialize` it can be asked again. */
export const OF_REQUEST: readonly Step[] = ['discover', 'initialize', 'discover'];

/** Servers that a package runner downloads first take seconds to say their first word. */
export const PROBE_TIMEOUT_MS = 10_000;
/** For `initialize`, whose answer is waited for in any case. */
export const HANDSHAKE_TIMEOUT_MS = 60_000;

export interface CommandAttemptsOptions {
  readonly dialer: SessionDialer;
  readonly clientInfo: Implementation;
  readonly clock: Clock;
  /** Silence allowed after `server/discover`. */
  readonly probeTimeoutMs: number;
  /** Sends `initialize` on a connection. */
  readonly initialize: (connection: LinkClient) => Promise<Answer>;
  readonly signal: AbortSignal;
}

/** Asks a process, and starts another one where the first has exited at the question. */
export class CommandAttempts implements Attempts {
  readonly carrier = 'stdio';
  readonly name: string;
  readonly #options: CommandAttemptsOptions;
  #connection: LinkClient;
  /** The process that runs now got a message that a server may exit at. */
  #wasProbed = false;

  constructor(options: CommandAttemptsOptions, connection: LinkClient) {
    this.name = options.dialer.name;
    this.#options = options;
    this.#connection = connection;
  }

  /** The connection that was asked last; it may have ended. */
  get connection(): LinkClient {
    return this.#connection;
  }

  ask(step: Step, revision: string): Promise<Answer> {
    const answer = step === 'discover' ? this.#discover(revision) : this.#initialize();
    return untilAborted(answer, this.#options.signal);
  }

  #discover(revision: string): Promise<Answer> {
    const { clientInfo, probeTimeoutMs } = this.#options;
    this.#wasProbed = true;
    const id = this.#connection.takeId();
    return this.#connection.ask(createDiscoverRequest({ id, revision, clientInfo }), probeTimeoutMs);
  }

  /** A server that exits at a message it does not know gets a second process, and no second such message. */
  async #initialize(): Promise<Answer> {
    if (this.#connection.end !== undefined) await this.#startAnew();
    const answer = await this.#options.initialize(this.#connection);
    if (answer.outcome.kind !== 'exited' || !this.#wasProbed) return answer;
    await this.#startAnew();
    return this.#options.initialize(this.#connection);
  }

  /** Not while anything is left of the first one, which may have what only one can have. */
  async #startAnew(): Promise<void> {
    const { dialer, clock, signal } = this.#options;
    await this.#connection.gone;
    signal.throwIfAborted();
    this.#wasProbed = false;
    this.#connection = new LinkClient(dialer, clock);
  }

  errorOf({ error }: Answer): BridgeError | undefined {
    return error;
  }

  nothingFound(tried: readonly Attempt[]): BridgeError {
    const attempts = tried.map(({ request, saw }) => ({ request, saw }));
    const shown = attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
    const message = `Server "${this.name}" runs, but does not speak MCP of any era known here. Tried: ${shown}.`;
    return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts } });
  }

  /** Ends the server. Resolves when nothing is left of it. */
  async close(reason?: BridgeError): Promise<void> {
    this.#connection.close(reason);
    await this.#connection.gone;
  }
}

/** An `initialize` of the bridge's own. */
export function initializeAs(
  clientInfo: Implementation,
  capabilities: Fields,
  timeoutMs: number,
): CommandAttemptsOptions['initialize'] {
  const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
  return (connection) => connection.request(INITIALIZE, params, timeoutMs);
}
