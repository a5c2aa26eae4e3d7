/**
 * Adapts a program's observer to the relay's interface, which reports the end of something by calling the function that
 * its start returned.
 */
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

/** Calls an observer outside of a call. An exception of the observer is logged and does not stop the bridge. */
export function tellSafely(log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (err) {
    log.error({ err }, 'an observer failed');
  }
}

/** The public status of the servers. */
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

/**
 * Interval at which the states are polled: several places determine a server's state, and none of them emits an event
 * when it changes.
 */
const LOOK_MS = 1000;

/** Reports each server whose state has changed. Returns the function that stops this. */
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
