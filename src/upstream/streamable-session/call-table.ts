import { LinkedList } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { answersId, type JsonRpcId } from '../../wire/frame.ts';
import { Lingering } from '../remote/link-messages.ts';
import type { ServerCall } from './server-call.ts';

/**
 * Limits calls that have been answered or accepted but whose response is open. Their requests are not needed any more,
 * so no large one is kept.
 */
export const LINGERING_LIMITS = { count: 16, bytes: 1024 * 1024, least: 0 };
/**
 * Time that calls of a lost session may still be answered. The server may have begun to process them before it lost the
 * session.
 */
const LOST_GRACE_MS = 10_000;

/** The calls of a link that have not ended. */
export class CallTable {
  readonly #clock: Clock;
  readonly #over: (call: ServerCall) => void;
  #calls = new LinkedList<ServerCall>();
  readonly #lingering = new Lingering<ServerCall>(LINGERING_LIMITS, (call) => {
    this.delete(call);
    call.abort();
  });
  readonly #cancelGrace = new Set<() => void>();

  /** @param over called with each call that leaves the table */
  constructor(clock: Clock, over: (call: ServerCall) => void) {
    this.#clock = clock;
    this.#over = over;
  }

  add(call: ServerCall): void {
    this.#calls.add(call);
  }

  /** Returns false if the call was not in the table. */
  delete(call: ServerCall): boolean {
    this.#lingering.delete(call);
    const wasThere = call.unlink();
    if (wasThere) this.#over(call);
    return wasThere;
  }

  find(exchange: Exchange): ServerCall | undefined {
    for (const call of this.#calls) {
      if (call.message.exchange === exchange && call.message.frame.kind === 'request') return call;
    }
    return undefined;
  }

  /** Finds the open call of a request by its id, whether the client's or the bridge's own. */
  findOpen(id: JsonRpcId): ServerCall | undefined {
    for (const call of this.#calls) if (call.isOpen && call.message.frame.id === id) return call;
    for (const call of this.#calls) if (call.isOpen && answersId(id, call.message.frame.id)) return call;
    return undefined;
  }

  /** Tells the calls that the session has no event stream any more. */
  lostStream(): void {
    for (const call of this.#calls.toArray()) call.lostStream();
  }

  /**
   * Keeps the connection of a call that has been answered or accepted for a limited time, since the server may send
   * further messages on its response.
   */
  linger(call: ServerCall): void {
    this.#lingering.add(call);
  }

  pause(): void {
    for (const call of this.#calls) if (call.message.reply === undefined) call.pause();
  }

  resume(): void {
    for (const call of this.#calls) call.resume();
  }

  /**
   * Removes the calls of sessions before this generation and passes each to `take`. Calls with a response are removed
   * at once, those without one after LOST_GRACE_MS: such a call most likely gets a 404 of its own and can then be
   * repeated.
   */
  takeOlder(generation: number, take: (call: ServerCall) => void): void {
    const takeThose = (isOver: (call: ServerCall) => boolean): void => {
      for (const call of this.#calls.toArray()) {
        if (call.session.generation >= generation || !isOver(call)) continue;
        this.delete(call);
        call.abort();
        take(call);
      }
    };
    takeThose((call) => call.hasResponse);
    const cancel = this.#clock.after(LOST_GRACE_MS, () => {
      this.#cancelGrace.delete(cancel);
      takeThose(() => true);
    });
    this.#cancelGrace.add(cancel);
  }

  close(): void {
    for (const cancel of this.#cancelGrace) cancel();
    this.#cancelGrace.clear();
    for (const call of this.#calls) call.abort();
    this.#calls = new LinkedList();
    this.#lingering.clear();
  }
}
