import type { Deps } from '../../deps.ts';
import { SHUTTING_DOWN } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type {
  CallContext,
  CallDialer,
  Readiness,
  ServerListener,
  SessionDialer,
  UpstreamLink,
} from '../../relay/ports.ts';
import { ParkedBytes } from '../parked-bytes.ts';
import { ClientConversations } from './client-conversations.ts';
import { Conversation, type ConversationServices } from './conversation.ts';
import type { Follower } from './follower.ts';
import { HostedTasks } from './hosted-tasks.ts';
import { KeptOutcomes } from './kept-outcomes.ts';
import type { ParkedCall } from './parked-call.ts';
import { PARKING_LIMITS, ParkedCalls, type ParkingLimits } from './parked-calls.ts';
import { LegacyPool, type LegacyPoolLimits } from './pool/legacy-pool.ts';
import type { Attribution } from './pool/legacy-session.ts';
import { RequestStates } from './request-state.ts';
import { SessionWishes } from './session-wishes.ts';
import { SubscriptionSlots } from './subscription-slots.ts';
import { TaskTools } from './task-tools.ts';

export interface ModernToLegacyOptions {
  /** The dialer of the legacy server; closed together with this one. */
  readonly dialer: SessionDialer;
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** How a client is called that does not say who it is. */
  readonly clientInfo: Implementation;
  /** How requests of the server are known to belong to a call. Default: `lease`. */
  readonly attribution?: Attribution;
  readonly poolLimits?: Partial<LegacyPoolLimits>;
  readonly parkingLimits?: Partial<ParkingLimits>;
  /** Subscriptions of one caller; default: as many as all together may have. */
  readonly maxListeningPerCaller?: number;
  /**
   * What keeps callers of one name apart, where a name stands for many: callers with equal values share sessions.
   * Undefined for a caller: it shares with nobody, and each of its calls gets a session of its own. Default: all callers
   * of one name share.
   */
  readonly affinityOf?: (context: CallContext) => string | undefined;
  /** Can what the server says on its own get here; where it cannot, nothing is promised of it. Default: yes. */
  readonly unsolicited?: boolean;
  /**
   * What clients that declare the tasks extension get of tools that run only as tasks: the task, or its result when it
   * is there, like all others. Default: the task.
   */
  readonly tasks?: 'hosted' | 'absorbed';
}

/** A legacy server as modern clients want it. */
export function createModernToLegacyDialer(options: ModernToLegacyOptions): CallDialer {
  return new ModernToLegacyDialer(options);
}

class ModernToLegacyDialer implements CallDialer {
  readonly #options: ModernToLegacyOptions;
  readonly #pool: LegacyPool;
  readonly #calls: ParkedCalls<ParkedCall<Follower>>;
  readonly #hostedTasks: HostedTasks;
  readonly #services: ConversationServices;
  readonly #wishes: SessionWishes;

  constructor(options: ModernToLegacyOptions) {
    const { dialer, deps, handshakeTimeoutMs, attribution = 'lease', poolLimits, parkingLimits } = options;
    this.#options = options;
    this.#wishes = new SessionWishes(options.clientInfo, options.affinityOf);
    const limits = poolLimits && { limits: poolLimits };
    this.#pool = new LegacyPool({ dialer, deps, handshakeTimeoutMs, attribution, ...limits });
    const parking = { ...PARKING_LIMITS, ...parkingLimits };
    const bytes = new ParkedBytes(parking);
    const outcomes = new KeptOutcomes(parking.bytes);
    this.#calls = new ParkedCalls(parking, bytes, outcomes);
    this.#hostedTasks = new HostedTasks(deps, parking, bytes, outcomes);
    this.#services = {
      deps,
      pool: this.#pool,
      calls: this.#calls,
      states: new RequestStates(deps.clock),
      taskTools: new TaskTools(),
      hostedTasks: options.tasks === 'absorbed' ? undefined : this.#hostedTasks,
      unsolicited: options.unsolicited ?? true,
      subscriptionSlots: new SubscriptionSlots(options.maxListeningPerCaller),
    };
  }

  get name(): string {
    return this.#options.dialer.name;
  }

  dial(listener: ServerListener, context: CallContext): UpstreamLink {
    const { metadata } = context;
    if (metadata !== undefined) return this.#converse(listener, context, metadata);
    const { log } = this.#options.deps;
    return new ClientConversations({ log, listener, converse: (own, its) => this.#converse(own, context, its) });
  }

  #converse(listener: ServerListener, context: CallContext, metadata: RequestMetadata): Conversation {
    const wanted = this.#wishes.of(context, metadata);
    return new Conversation({ services: this.#services, listener, wanted, metadata });
  }

  readiness(): Readiness {
    return this.#pool.readiness();
  }

  /** Who waits for an answer learns why there is none; who listens hears of a regular end. */
  async close(): Promise<void> {
    // A call that a client waits for ends with its session, which has the reason.
    for (const call of this.#calls.all()) if (call.observers.size === 0) call.close();
    this.#hostedTasks.close(SHUTTING_DOWN);
    await this.#pool.close();
  }

  killNow(): void {
    this.#pool.killNow();
  }
}
