import type { QueueSizes } from '../../collections/queue-sizes.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { CallServer, ModernCall } from '../../relay/modern-call.ts';
import type { CallContext, CallDialer, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Readiness } from '../../relay/readiness.ts';
import type { OutcomeStorage } from '../../relay/shared-state.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { ParkedBytes } from '../parked-bytes.ts';
import { ClientDescriptions, identified, type SessionSharing } from './client-descriptions.ts';
import { ClientRequests } from './client-requests.ts';
import { SubscriptionSlots } from './client-subscription.ts';
import type { ContinuedCall } from './continued-call.ts';
import { ModernRequest, type RequestServices } from './modern-request.ts';
import { LegacyPool, type LegacyPoolLimits } from './pool/legacy-pool.ts';
import type { Attribution } from './pool/sole-owner.ts';
import { MAYBE_ELSEWHERE } from './questions/call-record.ts';
import type { ParkedCall } from './questions/parked-call.ts';
import { KeptOutcomes, PARKING_LIMITS, ParkedCalls, type ParkingLimits } from './questions/parked-calls.ts';
import { RequestStates } from './questions/request-state.ts';
import { HostedTasks } from './tasks/hosted-tasks.ts';
import { TaskTools } from './tasks/task-tools.ts';

export interface ModernToLegacyOptions {
  /** The dialer of the legacy server; closed together with this one. */
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** The name for a client that does not name itself. */
  readonly clientInfo: Implementation;
  /** The way in which requests of the server are attributed to calls. Default: `lease`. */
  readonly attribution?: Attribution;
  readonly poolLimits?: Partial<LegacyPoolLimits>;
  readonly parkingLimits?: Partial<ParkingLimits>;
  /** Subscriptions of one caller; default: as many as all together may have. */
  readonly maxListeningPerCaller?: number;
  readonly sharing: SessionSharing;
  /** Storage for outcomes that outlive this process; default: none. */
  readonly outcomes?: OutcomeStorage | undefined;
  /** The list of queues in which those of this dialer are shown; default: none. */
  readonly queues?: QueueSizes;
}

/** A legacy server as modern clients want it. */
export function createModernToLegacyDialer(options: ModernToLegacyOptions): CallDialer {
  return new ModernToLegacyDialer(options);
}

class ModernToLegacyDialer implements CallDialer, CallServer {
  readonly #options: ModernToLegacyOptions;
  readonly #pool: LegacyPool;
  readonly #calls: ParkedCalls<ParkedCall>;
  readonly #hostedTasks: HostedTasks;
  readonly #services: RequestServices;
  readonly #descriptions: ClientDescriptions;
  /** Calls of other bridges that go on here. */
  readonly #continued = new Set<ContinuedCall>();
  readonly #leaveQueues: (() => void) | undefined;
  readonly #stopHearing: (() => void) | undefined;

  constructor(options: ModernToLegacyOptions) {
    const { dialer, deps, handshakeTimeoutMs, attribution = 'lease', poolLimits, parkingLimits } = options;
    this.#options = options;
    this.#descriptions = new ClientDescriptions(options.clientInfo, options.sharing);
    const limits = poolLimits && { limits: poolLimits };
    // A server that says on whose stream it asks may be one whose streams can be resumed.
    const calls = attribution === 'stream' && options.outcomes !== undefined ? 'stored' : 'lost';
    this.#pool = new LegacyPool({ dialer, deps, handshakeTimeoutMs, attribution, calls, ...limits });
    const parking = { ...PARKING_LIMITS, ...parkingLimits };
    const bytes = new ParkedBytes(parking);
    const outcomes = new KeptOutcomes(parking.bytes);
    this.#calls = new ParkedCalls(parking, bytes, outcomes);
    this.#hostedTasks = new HostedTasks(deps, parking, bytes, outcomes, options.outcomes);
    this.#services = {
      deps,
      pool: this.#pool,
      calls: this.#calls,
      states: new RequestStates(deps.clock),
      taskTools: new TaskTools(),
      hostedTasks: this.#hostedTasks,
      outcomes: options.outcomes,
      dialer,
      continued: this.#continued,
      subscriptionSlots: new SubscriptionSlots(options.maxListeningPerCaller),
    };
    this.#stopHearing = options.outcomes?.onLost(() => this.#leaveCalls(MAYBE_ELSEWHERE));
    this.#leaveQueues = options.queues?.add(() => [
      { queue: 'sessions_wanted', items: this.#pool.waiting, bytes: undefined },
      { queue: 'parked_calls', items: this.#calls.open, bytes: bytes.total },
      { queue: 'pooled_sessions', items: this.#pool.size, bytes: undefined },
    ]);
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
    const services = this.#services;
    const descriptions = this.#descriptions;
    return new ClientRequests({ services, descriptions, context, listener });
  }

  callServer(): CallServer {
    return this;
  }

  /**
   * Takes a request that comes alone. Its origin says whether anything proves that it is of the same client as others.
   */
  take(call: ModernCall, frame: Frame, metadata: RequestMetadata): boolean {
    const { principal, lane, identity } = call;
    const described = this.#descriptions.of({ principal, headers: lane.headers }, metadata);
    const client = identity === undefined ? described : identified(described, identity);
    const request = new ModernRequest({ services: this.#services, client, frame, listener: call });
    call.servedBy = request;
    request.start();
    // A call has one request, so its client has no further message that could be held back.
    return true;
  }

  readiness(): Readiness {
    return this.#pool.readiness();
  }

  /** Other bridges go on with the calls that wait for their clients, or may have done so. */
  #leaveCalls(reason: BridgeError): void {
    const failure = errorFrame(0, rpcErrorOf(reason));
    for (const parked of this.#calls.all()) parked.leave(failure);
  }

  /** A client that waits for an answer gets the reason why there is none; a subscription ends regularly. */
  async close(): Promise<void> {
    this.#leaveQueues?.();
    this.#stopHearing?.();
    this.#leaveCalls(SHUTTING_DOWN);
    for (const continued of [...this.#continued]) continued.lost(SHUTTING_DOWN);
    // A call that a client waits for ends with its session, which has the reason.
    for (const parked of this.#calls.all()) if (parked.followers.size === 0) parked.close();
    this.#hostedTasks.close(SHUTTING_DOWN);
    await this.#pool.close();
  }

  killNow(): void {
    this.#pool.killNow();
  }
}
