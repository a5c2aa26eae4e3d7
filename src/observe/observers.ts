/** Several observers as one. */
import type { ErrorCode } from '../errors.ts';
import type {
  CallEnding,
  ClientOrigin,
  DeprecatedFeature,
  ObservedCall,
  ObservedClient,
  ObservedServer,
  Observer,
  OnCallEnded,
  OnClientLeft,
} from '../relay/observer.ts';

/** An observer has thrown, which is a fault of ours. Told once for each of them. */
export type OnObserverFailed = (error: unknown) => void;

/**
 * What each of them sees, in their order; undefined: there is none, so that nobody reads a message for their sake. None of
 * them can break a call: what it throws is reported and goes no further.
 */
export function joinObservers(observers: readonly Observer[], onFailed: OnObserverFailed): Observer | undefined {
  const guarded = observers.map((observer) => new GuardedObserver(observer, onFailed));
  return guarded.length > 1 ? new JoinedObservers(guarded) : guarded[0];
}

class GuardedObserver implements Observer {
  readonly #observer: Observer;
  readonly #onFailed: OnObserverFailed;
  #hasFailed = false;

  constructor(observer: Observer, onFailed: OnObserverFailed) {
    this.#observer = observer;
    this.#onFailed = onFailed;
  }

  get seesCalls(): boolean {
    return this.#observer.seesCalls;
  }

  opened(call: ObservedCall): OnCallEnded | undefined {
    try {
      return this.#guard(this.#observer.opened(call));
    } catch (error) {
      return this.#report(error);
    }
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft | undefined {
    try {
      return this.#guard(this.#observer.connected(client, server));
    } catch (error) {
      return this.#report(error);
    }
  }

  refused(client: ClientOrigin, reason: ErrorCode): void {
    try {
      this.#observer.refused(client, reason);
    } catch (error) {
      this.#report(error);
    }
  }

  used(feature: DeprecatedFeature, by: Parameters<Observer['used']>[1]): void {
    try {
      this.#observer.used(feature, by);
    } catch (error) {
      this.#report(error);
    }
  }

  #guard<Told>(tell: ((told: Told) => void) | undefined): ((told: Told) => void) | undefined {
    if (tell === undefined) return undefined;
    return (told) => {
      try {
        tell(told);
      } catch (error) {
        this.#report(error);
      }
    };
  }

  /** Once: what throws for one call throws for every call. */
  #report(error: unknown): undefined {
    if (!this.#hasFailed) this.#onFailed(error);
    this.#hasFailed = true;
  }
}

class JoinedObservers implements Observer {
  readonly #observers: readonly Observer[];

  constructor(observers: readonly Observer[]) {
    this.#observers = observers;
  }

  /** All of them are told where one wants to be. */
  get seesCalls(): boolean {
    return this.#observers.some(({ seesCalls }) => seesCalls);
  }

  opened(call: ObservedCall): OnCallEnded | undefined {
    let told: ((ending: CallEnding) => void) | undefined;
    for (const observer of this.#observers) told = inOrder(told, observer.opened(call));
    return told;
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft | undefined {
    let told: OnClientLeft | undefined;
    for (const observer of this.#observers) told = inOrder(told, observer.connected(client, server));
    return told;
  }

  refused(client: ClientOrigin, reason: ErrorCode): void {
    for (const observer of this.#observers) observer.refused(client, reason);
  }

  used(feature: DeprecatedFeature, by: Parameters<Observer['used']>[1]): void {
    for (const observer of this.#observers) observer.used(feature, by);
  }
}

/** One function that calls both; where there is one alone, that one. */
function inOrder<Told>(
  first: ((told: Told) => void) | undefined,
  second: ((told: Told) => void) | undefined,
): ((told: Told) => void) | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return (told) => {
    first(told);
    second(told);
  };
}
