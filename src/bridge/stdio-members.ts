import type { Member, MemberServer, Members } from '../aggregate/members.ts';
import { SharedCapacity } from '../collections/shared-capacity.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { type BridgeError, SHUTTING_DOWN, toBridgeError } from '../errors.ts';
import { CallCapacity } from '../relay/calls.ts';
import { type CallerPolicy, describeCallers } from './caller-policy.ts';
import { createMember } from './create-member.ts';
import { createModernCalls, createSessions } from './create-registries.ts';
import { createDial, type DialParts, type DialServer } from './dial-server.ts';
import { Guards } from './guards.ts';
import { Composite, type Part } from './lifecycle.ts';
import type { DialedServer } from './served-server.ts';

/**
 * Policy for the callers of a member: the one client on our own pipes, through the aggregate. A session of that client has
 * a connection of its own, and its modern requests share one, as with programs that reach a bridge over HTTP.
 */
const THROUGH_AGGREGATE: CallerPolicy = { kind: 'user', names: 'one' };

/** The aggregate as the one server of `connect`, with everything that it is made of. */
export interface DialedAggregate {
  readonly dialed: DialedServer;
  readonly members: StdioMembers;
}

/**
 * Dials the aggregate.
 * @param config has the aggregate first, and then its members
 */
export async function dialAggregate(
  { listener, servers: [aggregate, ...listed], limits }: Config,
  parts: Pick<DialParts, 'observation' | 'urgency'>,
  deps: Deps,
): Promise<DialedAggregate> {
  const guards = new Guards(deps);
  const members = new StdioMembers(listed, (server, own) => dial(server, own), deps);
  const dial = createDial({
    ...parts,
    callersOf: (server) => (server === aggregate ? describeCallers(listener, server) : THROUGH_AGGREGATE),
    ownMarks: undefined,
    bound: () => [],
    capacity: {
      children: new SharedCapacity(limits.maxChildren),
      calls: new CallCapacity(limits.maxInFlight),
    },
    guards,
    replica: undefined,
    memberTokens: undefined,
    shutdownGraceMs: limits.shutdownGraceMs,
    waits: 'client',
    members,
  });
  const dialed = await dial(aggregate, deps);
  return { dialed: { ...dialed, close: () => dialed.close().finally(() => guards.close()) }, members };
}

/** The members of the aggregate of `connect`, which have no addresses of their own and stay the same. */
export class StdioMembers extends Composite implements Members {
  readonly all: readonly Member[];
  readonly #servers: readonly StdioMember[];

  constructor(servers: readonly ServerConfig[], dial: DialServer, deps: Deps) {
    super();
    this.#servers = servers.map((config) => {
      const name = config.listing?.name ?? '';
      return new StdioMember(config, dial, { ...deps, log: deps.log.child({ server: name }) });
    });
    this.all = this.#servers.flatMap((server) => createMember(server.config, server) ?? []);
  }

  onChange(): () => void {
    return () => {};
  }

  protected override parts(): readonly Part[] {
    return this.#servers;
  }
}

interface RunningMember extends MemberServer {
  readonly dialed: DialedServer;
}

/**
 * - `idle`: not started yet, or it could not be started. The next caller tries.
 * - `starting`: its dialers are being created.
 * - `running`: it takes sessions and calls.
 * - `closed`: the bridge ends.
 */
type MemberState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly started: Promise<RunningMember> }
  | { readonly kind: 'running'; readonly running: RunningMember }
  | { readonly kind: 'closed'; readonly running: RunningMember | undefined };

/** A member that is started by its first caller. */
class StdioMember implements Part {
  readonly config: ServerConfig;
  readonly #dial: DialServer;
  readonly #deps: Deps;
  #state: MemberState = { kind: 'idle' };

  constructor(config: ServerConfig, dial: DialServer, deps: Deps) {
    this.config = config;
    this.#dial = dial;
    this.#deps = deps;
  }

  get running(): MemberServer | undefined {
    return this.#state.kind === 'running' ? this.#state.running : undefined;
  }

  async start(): Promise<MemberServer> {
    const state = this.#state;
    switch (state.kind) {
      case 'running':
        return state.running;
      case 'starting':
        return state.started;
      case 'closed':
        throw SHUTTING_DOWN;
      case 'idle': {
        const starting: MemberState = { kind: 'starting', started: this.#start() };
        this.#state = starting;
        starting.started.then(
          (running) => {
            if (this.#state === starting) this.#state = { kind: 'running', running };
          },
          () => {
            if (this.#state === starting) this.#state = { kind: 'idle' };
          },
        );
        return starting.started;
      }
    }
  }

  async #start(): Promise<RunningMember> {
    const { config } = this;
    try {
      const dialed = await this.#dial(config, this.#deps);
      const { calls, sessionDialers, callDialers } = dialed;
      const parts = { calls, deps: this.#deps };
      return {
        dialed,
        sessions: createSessions(config, { ...parts, dialers: sessionDialers }),
        modernCalls: createModernCalls({ ...config, callers: THROUGH_AGGREGATE }, { ...parts, dialers: callDialers }),
      };
    } catch (thrown) {
      throw toBridgeError(thrown);
    }
  }

  async drain(graceMs: number): Promise<void> {
    if (this.#state.kind !== 'running') return;
    const { sessions, modernCalls } = this.#state.running;
    await Promise.all([sessions.drain(graceMs), modernCalls.drain(graceMs)]);
  }

  async close(reason: BridgeError): Promise<void> {
    const state = this.#state;
    if (state.kind === 'running') this.#state = { kind: 'closed', running: state.running };
    else this.#state = { kind: 'closed', running: undefined };
    const running = state.kind === 'starting' ? await state.started.catch(() => undefined) : this.#state.running;
    if (running === undefined) return;
    this.#state = { kind: 'closed', running };
    running.sessions.close(reason);
    running.modernCalls.close(reason);
    await running.dialed.close();
  }

  killNow(): void {
    const state = this.#state;
    if (state.kind === 'running' || state.kind === 'closed') state.running?.dialed.sessionDialers.killNow();
  }
}
