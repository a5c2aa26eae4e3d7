/** Decides which client a request of a legacy server belongs to, where its transport does not name the call. */
import type { Clock } from '../../../deps.ts';
import { mayAsk } from '../../../mcp/vocabulary/methods.ts';
import type { Call } from '../../call.ts';

/**
 * Calls with the same identity are certainly of one client: a connection that carries one client alone, or a session of
 * the legacy era. Undefined: nothing proves that, so a call without identity is taken to be of a client of its own.
 */
export type ClientIdentity = object | undefined;

export interface PossibleCauses<Candidate> {
  /** The open calls that the server may have asked in, in the order they were sent. */
  readonly open: readonly Candidate[];
  /** The clients of the abandoned calls that the server may have asked in. */
  readonly abandoned: readonly ClientIdentity[];
  readonly clientOf: (candidate: Candidate) => ClientIdentity;
  /**
   * `client`: a client of the legacy era has one session, in which the server's question may come with any of its calls.
   * `call`: a client of the modern era is asked in the answer to a call, so it must be the very one.
   */
  readonly askedIn: 'client' | 'call';
}

/**
 * - `call`: the question is asked in this call.
 * - `client`: only abandoned calls of this client can be meant.
 * - `several`: one of several open calls is meant. A call that the server answers was not waiting itself, so this becomes
 *   clear when one is left.
 * - `abandoned`: an abandoned call of another client can be meant, and nobody will ever know.
 * - `none`: there is no call that could be asked in.
 */
export type QuestionOwner<Candidate> =
  | { readonly kind: 'call'; readonly candidate: Candidate }
  | { readonly kind: 'client'; readonly client: ClientIdentity }
  | { readonly kind: 'several' | 'abandoned' | 'none' };

const SEVERAL = { kind: 'several' } as const;
const ABANDONED = { kind: 'abandoned' } as const;
const NONE = { kind: 'none' } as const;

/**
 * Finds whom to ask. A call is *open* until the server has answered it or its client has withdrawn it. It is *abandoned*
 * from then on until the server answers it all the same or ends, and where one process serves several clients for
 * `ABANDONED_MS` at most: the server should have stopped, but need not say so, and may ask in it as long as it has not.
 * Both are *candidates* if they were sent before the question came and are of a method that may ask.
 *
 * Invariants:
 * 1. A client is asked only if every candidate is its own, or there is only one.
 * 2. The only open call is asked if all abandoned candidates are of its client, or there are none. A client that is alone
 *    at the server is therefore always asked, whatever it has canceled.
 * 3. With `askedIn: 'call'`, nobody is asked while several calls are open.
 * 4. Neither order nor likelihood decides: the same candidates give the same result.
 */
export function attributeQuestion<Candidate>(causes: PossibleCauses<Candidate>): QuestionOwner<Candidate> {
  const { open, abandoned, clientOf, askedIn } = causes;
  const latest = open.at(-1);
  if (latest === undefined && (askedIn === 'call' || abandoned.length === 0)) return NONE;
  const clients = [...open.map(clientOf), ...abandoned];
  const [client] = clients;
  const isOneClient = clients.length === 1 || (client !== undefined && clients.every((other) => other === client));
  if (!isOneClient) return abandoned.length === 0 ? SEVERAL : ABANDONED;
  if (latest === undefined) return { kind: 'client', client };
  return askedIn === 'call' && open.length > 1 ? SEVERAL : { kind: 'call', candidate: latest };
}

// ---- Abandoned calls

/**
 * The time that an abandoned call counts where one process serves several clients, and an open one of a client that has no
 * connection anymore. Without a limit, one client that leaves would keep all others from being asked. A server that still
 * asks in it later is not told from one that asks in the only open call.
 */
export const ABANDONED_MS = 10_000;

/** Abandoned calls that are remembered by id. Of earlier ones it is not noted anymore when the server answers them. */
export const MAX_ABANDONED = 1000;

export interface AbandonedCall {
  readonly client: ClientIdentity;
  /** The client's id of the call, if that is a number; other ids can be long, and are not kept. */
  readonly id: number | undefined;
  readonly mayAsk: boolean;
  readonly sinceMs: number;
}

/**
 * The calls that their clients withdrew, or left, and that the server has not answered.
 * [spec 2025-11-25 basic/utilities/cancellation]
 */
export class AbandonedCalls {
  readonly #clock: Clock;
  readonly #countForMs: number;
  /** The key is the id on the link to the server. The first entry was withdrawn first. */
  readonly #byId = new Map<number, AbandonedCall>();
  /** Stands for all that were too many to be remembered. */
  #forgotten: AbandonedCall | undefined;

  /** @param countForMs how long each counts if the server does not answer it; Infinity: as long as the server runs */
  constructor(clock: Clock, countForMs: number) {
    this.#clock = clock;
    this.#countForMs = countForMs;
  }

  get isEmpty(): boolean {
    if (this.#byId.size > 0 || this.#forgotten !== undefined) this.#expire();
    return this.#byId.size === 0 && this.#forgotten === undefined;
  }

  add({ id, upstreamId, method }: Pick<Call, 'id' | 'upstreamId' | 'method'>, client: ClientIdentity): void {
    this.#expire();
    const kept = typeof id === 'number' ? id : undefined;
    this.#byId.set(upstreamId, { client, id: kept, mayAsk: mayAsk(method), sinceMs: this.#clock.now() });
    if (this.#byId.size <= MAX_ABANDONED) return;
    for (const [id, oldest] of this.#byId) {
      this.#byId.delete(id);
      this.#forget(oldest);
      break;
    }
  }

  #forget(abandoned: AbandonedCall): void {
    const earlier = this.#forgotten ?? abandoned;
    const client = earlier.client === abandoned.client ? abandoned.client : undefined;
    this.#forgotten = { ...abandoned, client, mayAsk: earlier.mayAsk || abandoned.mayAsk };
  }

  /** The server answers one after all, so it asks nothing more in it. Undefined: this was none. */
  takeAnswered(upstreamId: unknown): AbandonedCall | undefined {
    if (typeof upstreamId !== 'number') return undefined;
    const abandoned = this.#byId.get(upstreamId);
    this.#byId.delete(upstreamId);
    return abandoned;
  }

  /** The clients of those that the server can have asked in before `lastId` was sent. */
  askers(lastId = Number.POSITIVE_INFINITY): readonly ClientIdentity[] {
    return this.#clientsWhere((abandoned, id) => abandoned.mayAsk && id <= lastId);
  }

  /** True if every call that the server can ask in is certainly of this client. */
  areAskersOf(client: ClientIdentity): boolean {
    if (this.isEmpty) return true;
    return this.askers().every((other) => other !== undefined && other === client);
  }

  /** The clients of all of them. */
  clients(): readonly ClientIdentity[] {
    return this.#clientsWhere(() => true);
  }

  #clientsWhere(isMeant: (abandoned: AbandonedCall, id: number) => boolean): readonly ClientIdentity[] {
    this.#expire();
    const clients: ClientIdentity[] = [];
    if (this.#forgotten !== undefined && isMeant(this.#forgotten, 0)) clients.push(this.#forgotten.client);
    for (const [id, abandoned] of this.#byId) if (isMeant(abandoned, id)) clients.push(abandoned.client);
    return clients;
  }

  #expire(): void {
    const sinceMs = this.#clock.now() - this.#countForMs;
    if (this.#forgotten !== undefined && this.#forgotten.sinceMs <= sinceMs) this.#forgotten = undefined;
    for (const [id, abandoned] of this.#byId) {
      if (abandoned.sinceMs > sinceMs) return;
      this.#byId.delete(id);
    }
  }

  /** The server is another one. */
  clear(): void {
    this.#byId.clear();
    this.#forgotten = undefined;
  }
}
