/** Joins several observers into one. */
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

/** Called when an observer has thrown, which is a bug of the bridge. Called once for each observer. */
export type OnObserverFailed = (error: unknown) => void;

/**
 * Returns an observer that passes every event to all of them, in order; undefined if there are none, so that no message
 * is read for their sake. An exception of an observer is reported and breaks no call.
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

  /** Reports only the first exception, since an observer that throws for one call would throw for each. */
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

  /** All observers see a call if one of them wants to. */
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

/** Returns a function that calls both; if only one is given, returns that one. */
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
