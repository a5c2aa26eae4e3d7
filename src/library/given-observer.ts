/** The observer of a program as the relay's own kind, which is told the end of something by the function it returned. */
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import type { Inspection } from '../observe/inspection.ts';
import type {
  CallEnding,
  ObservedCall,
  ObservedClient,
  Observer,
  OnCallEnded,
  OnClientLeft,
} from '../relay/observer.ts';
import type { BridgeObserver, CallInfo, ClientInfo, ServerStatus } from './public-types.ts';

export class GivenObserver implements Observer {
  readonly #given: BridgeObserver;
  readonly seesCalls: boolean;

  constructor(given: BridgeObserver) {
    this.#given = given;
    this.seesCalls = given.callBegan !== undefined || given.callEnded !== undefined;
  }

  opened({ client, method, tool, requestBytes }: ObservedCall): OnCallEnded | undefined {
    if (!this.seesCalls) return undefined;
    const call: CallInfo = { client: toInfo(client), method, tool, requestBytes };
    this.#given.callBegan?.(call);
    return ({ outcome, bytes, durationMs }: CallEnding) =>
      this.#given.callEnded?.(call, { outcome, bytes, durationMs });
  }

  connected(client: ObservedClient): OnClientLeft | undefined {
    const info = toInfo(client);
    this.#given.clientConnected?.(info);
    return (reason) => this.#given.clientLeft?.(info, reason);
  }

  refused(...[{ transport, principal, server }, reason]: Parameters<Observer['refused']>): void {
    this.#given.clientRefused?.({ transport, principal, server }, reason);
  }

  used(): void {}
}

function toInfo({ transport, principal, server, era, revision, name, version }: ObservedClient): ClientInfo {
  return { transport, principal, server, era, revision, name, version };
}

/** For what is told outside of a call. What an observer throws is its own fault, and ends nothing of ours. */
export function tellSafely(log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (err) {
    log.error({ err }, 'an observer failed');
  }
}

/** What a program is told of the servers. */
export function toStatuses({ servers }: Inspection): readonly ServerStatus[] {
  return servers.map(({ name, state, problem, sessions, openCalls, processes, restarts }) => ({
    name,
    state,
    problem,
    sessions,
    openCalls,
    processes,
    restarts,
  }));
}

/** What decides the state of a server is in several places, none of which tells when it changes. */
const LOOK_MS = 1000;

/** Tells of servers whose state is another one than before. Returns the function that ends it. */
export function watchServers(
  inspect: () => readonly ServerStatus[],
  changed: (server: ServerStatus) => void,
  clock: Clock,
): () => void {
  let states = new Map(inspect().map(({ name, state }) => [name, state]));
  return clock.every(LOOK_MS, () => {
    const servers = inspect();
    for (const server of servers) if (states.get(server.name) !== server.state) changed(server);
    states = new Map(servers.map(({ name, state }) => [name, state]));
  });
}
