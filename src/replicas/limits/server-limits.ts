import type { IncomingMessage } from 'node:http';
import type { ServerConfig } from '../../config/server.ts';
import { BridgeError } from '../../errors.ts';
import { principalOf } from '../../http/auth/callers.ts';
import { PROTOCOL_VERSION_HEADER } from '../../mcp/vocabulary/headers.ts';
import { eraOf } from '../../mcp/vocabulary/revisions.ts';
import type { CallRegistry } from '../../relay/call-registry.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { SharedLimits, WiderLimits, WiderRefusal } from '../../relay/shared-state.ts';
import type { ChildLimit, WiderChildLimit } from '../../upstream/stdio/child-limit.ts';
import { type CallerLimits, type ClusterLimits, type LimitTaker, refusalOf } from './cluster-limits.ts';

/** The registries whose entries count against the limits. */
export interface CountedRegistries {
  readonly sessions: Pick<SessionRegistry, 'size' | 'countOf'>;
  readonly modernCalls: Pick<CallRegistry, 'countOf'>;
}

export interface ServerLimitsOptions {
  readonly limits: ClusterLimits;
  /** Name of the server, the same on all replicas. */
  readonly name: string;
  readonly config: ServerConfig;
  /** True if callers have names, so that a limit for each of them makes sense. */
  readonly haveNames: boolean;
  /** Returns the registries; undefined until they are created. */
  readonly registries: () => CountedRegistries | undefined;
}

const RETRY = { retryAfterMs: 1000 };

/**
 * Limits of one server that apply to all replicas together. Registries ask synchronously for what this replica holds;
 * before something is opened, more is requested from the other replicas if needed.
 */
export class ServerLimits implements SharedLimits {
  readonly ofSessions: WiderLimits;
  readonly ofCalls: Pick<WiderLimits, 'refusalFor'>;
  readonly #sessions: LimitTaker;
  /** Sessions per caller; undefined: one caller may have all sessions. */
  readonly #sessionsOfCallers: CallerLimits | undefined;
  /** Calls per caller; undefined: a caller's calls all go to one replica, or callers have no names. */
  readonly #callsOfCallers: CallerLimits | undefined;

  constructor({ limits, name, config, haveNames, registries }: ServerLimitsOptions) {
    const { maxSessions, maxCallerSessions } = config.sessions;
    const { maxSessionInFlight } = config.limits;
    this.#sessions = limits.of(`sessions of ${name}`, maxSessions, () => registries()?.sessions.size ?? 0);
    this.#sessionsOfCallers =
      maxCallerSessions < maxSessions
        ? limits.perCaller(
            `sessions of ${name}`,
            maxCallerSessions,
            (caller) => registries()?.sessions.countOf(caller) ?? 0,
          )
        : undefined;
    this.#callsOfCallers =
      config.target.kind === 'url' && haveNames
        ? limits.perCaller(
            `calls of ${name}`,
            maxSessionInFlight,
            (caller) => registries()?.modernCalls.countOf(caller) ?? 0,
          )
        : undefined;
    this.ofSessions = {
      refusal: () => toRefusal(refusalOf(this.#sessions.limit), () => allSessionsTaken(maxSessions)),
      refusalFor: (caller) =>
        toRefusal(this.#sessionsOfCallers?.refusalFor(caller), () => callersSessionsTaken(maxCallerSessions)),
    };
    this.ofCalls = {
      refusalFor: (caller) =>
        toRefusal(this.#callsOfCallers?.refusalFor(caller), () => callersCallsTaken(maxSessionInFlight)),
    };
  }

  /**
   * Reserves a session for a request that may open one. The result is to be awaited before the request is served;
   * undefined: no wait is needed.
   */
  beforeSession(request: IncomingMessage): Promise<unknown> | undefined {
    const version = request.headers[PROTOCOL_VERSION_HEADER];
    if (typeof version === 'string' && eraOf(version) === 'modern') return undefined;
    const all = this.#sessions.limit?.reserve();
    const ofCaller = this.#sessionsOfCallers?.reserve(principalOf(request));
    return all === undefined ? ofCaller : ofCaller === undefined ? all : Promise.all([all, ofCaller]);
  }

  /** Reserves a call without a session. The result is to be awaited before the call; undefined: no wait is needed. */
  beforeCall(request: IncomingMessage): Promise<unknown> | undefined {
    return this.#callsOfCallers?.reserve(principalOf(request));
  }

  close(): void {
    this.#sessions.close();
    this.#sessionsOfCallers?.close();
    this.#callsOfCallers?.close();
  }
}

export interface ProcessLimitOptions {
  /** Name of the server, the same on all replicas. */
  readonly name: string;
  readonly total: number;
  /** Returns the processes at this replica. Called only after the limit was created. */
  readonly children: () => Pick<ChildLimit, 'taken'>;
}

/** Limit of the processes of one server at all replicas together. */
export class ProcessLimit implements WiderChildLimit {
  readonly #taker: LimitTaker;
  readonly #total: number;

  constructor(limits: ClusterLimits, { name, total, children }: ProcessLimitOptions) {
    this.#total = total;
    this.#taker = limits.of(`processes of ${name}`, total, () => children().taken, 'a-block');
  }

  /** Reserves a process. The result is to be awaited before it is started; undefined: no wait is needed. */
  beforeStart(): Promise<void> | undefined {
    return this.#taker.limit?.reserve();
  }

  /** Reserves several processes that are to be started at once. */
  async beforeFirst(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.beforeStart()));
  }

  refusal(): BridgeError | undefined {
    return toRefusal(refusalOf(this.#taker.limit), () => allProcessesTaken(this.#total))?.error;
  }

  close(): void {
    this.#taker.close();
  }
}

function toRefusal(why: ReturnType<typeof refusalOf>, full: () => BridgeError): WiderRefusal | undefined {
  if (why === undefined) return undefined;
  return why === 'full' ? { error: full(), remedy: 'end-one' } : { error: why, remedy: 'wait' };
}

const allSessionsTaken = (most: number): BridgeError =>
  limitError(
    `The replicas together have ${most} sessions, the most allowed (--cluster-limits); end one (DELETE), try again later, or raise --max-sessions on all of them.`,
  );
const callersSessionsTaken = (most: number): BridgeError =>
  limitError(
    `This caller has ${most} sessions at all replicas together, the most allowed (--cluster-limits); end one (DELETE), try again later, or raise --max-caller-sessions on all of them.`,
  );
const allProcessesTaken = (most: number): BridgeError =>
  limitError(
    `The replicas together have ${most} processes of this server, the most allowed (--cluster-limits); those that are ending count. Try again later, or raise --max-children on all of them.`,
  );
const callersCallsTaken = (most: number): BridgeError =>
  new BridgeError(
    'ERR_SESSION_BUSY',
    `${most} calls are open for this caller at all replicas together, the most allowed (--cluster-limits); wait for answers, or close subscriptions, before sending more.`,
    RETRY,
  );

function limitError(message: string): BridgeError {
  return new BridgeError('ERR_SESSION_LIMIT', message, RETRY);
}
