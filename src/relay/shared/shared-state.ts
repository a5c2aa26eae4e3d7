import { LinkedList } from '../../collections/linked-list.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { type LogLevel, severityOf } from '../../mcp/vocabulary/log-levels.ts';
import { SubscribedUris } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Frame } from '../../wire/frame.ts';
import type { UpstreamLink } from '../ports.ts';
import type { ClientLink } from './client-link.ts';
import type { InitializeResult } from './initialize-result.ts';
import { PendingCalls } from './pending-calls.ts';
import { ServerQuestions } from './server-questions.ts';
import { UnclearQuestions } from './unclear-questions.ts';

/** What a shared server knows of its clients; it outlives the child, so that a new one can be brought up to date. */
export class SharedState {
  readonly clients = new LinkedList<ClientLink>();
  readonly calls = new PendingCalls();
  readonly questions = new ServerQuestions();
  readonly subscriptions = new SubscriptionTable<ClientLink>();
  readonly levels = new LogLevels<ClientLink>();
  readonly withdrawn: WithdrawnRequests;
  readonly givenUp = new GivenUpCalls();
  readonly unclear: UnclearQuestions;
  /** Requests of the bridge itself whose answers matter, by id. */
  readonly own = new Map<number, (answer: Frame) => void>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.withdrawn = new WithdrawnRequests(clock);
    this.unclear = new UnclearQuestions(clock);
  }

  /** The id of the latest request on the shared link. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Ids on the shared link: integers, which every server echoes unchanged, never used twice. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

/** The child that serves at the moment, after its handshake. */
export interface ReadyServer {
  readonly link: UpstreamLink;
  readonly initializeResult: InitializeResult;
}

interface Subscription<Client> {
  readonly clients: Set<Client>;
  /** The server has agreed. Until then each client asks it for itself. */
  isGranted: boolean;
}

/** Which clients subscribed to which resource; the server is told of the first and of the last of them. */
export class SubscriptionTable<Client> {
  readonly #byUri = new Map<string, Subscription<Client>>();
  readonly #ofClient = new Map<Client, SubscribedUris>();

  has(uri: string): boolean {
    return this.#byUri.has(uri);
  }

  isGranted(uri: string): boolean {
    return this.#byUri.get(uri)?.isGranted ?? false;
  }

  /** False: the client has as many as it may have. */
  add(uri: string, client: Client): boolean {
    const own = this.#ofClient.get(client) ?? new SubscribedUris();
    if (!own.add(uri)) return false;
    this.#ofClient.set(client, own);
    const subscription = this.#byUri.get(uri);
    if (subscription === undefined) this.#byUri.set(uri, { clients: new Set([client]), isGranted: false });
    else subscription.clients.add(client);
    return true;
  }

  /** What the server says to a subscription; of one that was given up meanwhile it says nothing. */
  setGranted(uri: string, isGranted: boolean): void {
    const subscription = this.#byUri.get(uri);
    if (subscription !== undefined) subscription.isGranted = isGranted;
  }

  /** True: that was the last one, the server can be told. */
  remove(uri: string, client: Client): boolean {
    const own = this.#ofClient.get(client);
    own?.delete(uri);
    if (own?.size === 0) this.#ofClient.delete(client);
    const subscription = this.#byUri.get(uri);
    if (subscription === undefined || !subscription.clients.delete(client) || subscription.clients.size > 0)
      return false;
    return this.#byUri.delete(uri);
  }

  /** The client leaves; returns the resources nobody is left for. */
  removeClient(client: Client): readonly string[] {
    return [...(this.#ofClient.get(client) ?? [])].filter((uri) => this.remove(uri, client));
  }

  uris(): readonly string[] {
    return [...this.#byUri.keys()];
  }

  /** All that subscribed to anything. */
  clients(): ReadonlySet<Client> {
    return new Set(this.#ofClient.keys());
  }

  /**
   * Whom an update of this resource concerns. Servers may report a part of what was subscribed to
   * [spec 2025-11-25 server/resources#subscriptions], so those who subscribed to something above it count too.
   */
  clientsFor(uri: string): ReadonlySet<Client> {
    const concerned = new Set<Client>();
    for (const [subscribed, { clients }] of this.#byUri) {
      if (!isPartOf(uri, subscribed)) continue;
      for (const client of clients) concerned.add(client);
    }
    return concerned;
  }
}

function isPartOf(uri: string, whole: string): boolean {
  return uri === whole || uri.startsWith(whole.endsWith('/') ? whole : `${whole}/`);
}

/** Each client's log level, and the one the server must have so that nobody misses anything. */
export class LogLevels<Client> {
  readonly #levels = new Map<Client, LogLevel>();

  get(client: Client): LogLevel | undefined {
    return this.#levels.get(client);
  }

  /** Undefined: as if it had never asked. */
  set(client: Client, level: LogLevel | undefined): void {
    if (level === undefined) this.#levels.delete(client);
    else this.#levels.set(client, level);
  }

  /** The most verbose level any client asked for; undefined: nobody asked. */
  mostVerbose(): LogLevel | undefined {
    let most: LogLevel | undefined;
    for (const level of this.#levels.values()) {
      if (most === undefined || severityOf(level) < severityOf(most)) most = level;
    }
    return most;
  }

  /** A client that never set a level gets no log messages of a shared server: they may be about somebody else. */
  wants(client: Client, level: LogLevel): boolean {
    const wanted = this.#levels.get(client);
    return wanted !== undefined && severityOf(level) >= severityOf(wanted);
  }
}

/** Ids that are remembered. Beyond that it is not known any more which calls the server has ended. */
export const MAX_GIVEN_UP = 1000;

/**
 * Calls that their clients gave up and that the server has not answered. It should have stopped, and need not say so;
 * one that has not can still ask something in them. [spec 2025-11-25 basic/utilities/cancellation]
 */
export class GivenUpCalls {
  readonly #ids = new Set<number>();
  #isFull = false;

  get isEmpty(): boolean {
    return this.#ids.size === 0 && !this.#isFull;
  }

  add(upstreamId: number): void {
    if (this.#ids.size < MAX_GIVEN_UP) this.#ids.add(upstreamId);
    else this.#isFull = true;
  }

  /** The server answers one after all: it asks nothing more in it. */
  answered(upstreamId: unknown): void {
    if (typeof upstreamId === 'number') this.#ids.delete(upstreamId);
  }

  /** The server is another one. */
  clear(): void {
    this.#ids.clear();
    this.#isFull = false;
  }
}

/** More than that is nobody's change of mind: a server that takes nothing is asked for more and more in vain. */
export const MAX_WITHDRAWN_BYTES = 64 * 1024 * 1024;
/** Beyond it one small request goes on now and then: only a call that is given up shows that a server hangs. */
export const TRIAL_MS = 1000;
export const MAX_TRIAL_BYTES = 16 * 1024;

/**
 * Requests that were withdrawn before a full server has taken them. They wait to be written all the same, and count as
 * nobody's open call any more.
 */
export class WithdrawnRequests {
  readonly #clock: Clock;
  #isFull = false;
  #bytes = 0;
  #nextTrialMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what the server's link has said to a message, and passes it on. */
  sent(hasCapacity: boolean): boolean {
    this.#isFull ||= !hasCapacity;
    return hasCapacity;
  }

  add(bytes: number): void {
    if (this.#isFull) this.#bytes += bytes;
  }

  /** The server has capacity again, or is another one. */
  clear(): void {
    this.#isFull = false;
    this.#bytes = 0;
  }

  /** Why the server is not asked for this, of so many bytes; undefined: it is. */
  refusalOf(requestBytes: number): BridgeError | undefined {
    if (this.#bytes < MAX_WITHDRAWN_BYTES) return undefined;
    const nowMs = this.#clock.now();
    if (requestBytes > MAX_TRIAL_BYTES || nowMs < this.#nextTrialMs) return TOO_MUCH;
    this.#nextTrialMs = nowMs + TRIAL_MS;
    return undefined;
  }
}

const TOO_MUCH = new BridgeError(
  'ERR_SESSION_BUSY',
  `The server takes nothing, and ${MAX_WITHDRAWN_BYTES} bytes of requests wait for it that their clients have withdrawn; try again later.`,
  { retryAfterMs: 1000 },
);
