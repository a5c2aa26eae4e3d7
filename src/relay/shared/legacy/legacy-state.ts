import { RecentNames } from '../../../collections/bounded-collections.ts';
import { LinkedList } from '../../../collections/short-lived-values.ts';
import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { type LogLevel, severityOf } from '../../../mcp/vocabulary/client-declarations.ts';
import { SubscribedUris } from '../../../mcp/vocabulary/subscribed-uris.ts';
import { type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { requestFrame } from '../../../wire/write-message.ts';
import type { UpstreamLink } from '../../ports.ts';
import { WithdrawnRequests } from '../withdrawn-requests.ts';
import { AbandonedCalls } from './attribution.ts';
import type { InitializeResult } from './initialize-result.ts';
import type { LegacyClient } from './legacy-client.ts';
import { PendingCalls, type SoleOne } from './pending-calls.ts';

/**
 * The state that the clients of a shared server have set up. It outlives the child, so that the next one can be brought
 * to it.
 */
export class LegacyState {
  readonly clients = new LinkedList<LegacyClient>();
  readonly pendingCalls = new PendingCalls();
  readonly abandoned: AbandonedCalls;
  readonly questions = new ServerQuestions();
  readonly subscriptions = new SubscriptionTable<LegacyClient>();
  readonly levels = new LogLevels<LegacyClient>();
  readonly withdrawn: WithdrawnRequests;
  /** Requests of the bridge itself whose answers matter, by id. */
  readonly own = new Map<number, (answer: Frame) => void>();
  /** The server's answer to `initialize`; undefined while no server serves. */
  offer: InitializeResult | undefined;
  /** The transport of the link names the call that a message belongs to: it has done so, be it for an answer. */
  namesCalls = false;
  #lastId = 0;

  /** @param abandonedForMs how long an abandoned call counts; see `AbandonedCalls` */
  constructor(clock: Clock, abandonedForMs: number) {
    this.withdrawn = new WithdrawnRequests(clock);
    this.abandoned = new AbandonedCalls(clock, abandonedForMs);
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

  /** Sends a request of the bridge itself whose answer does not matter; no call waits for it when it comes. */
  tell(link: UpstreamLink, method: string, params: object): void {
    link.send(requestFrame(this.nextId(), method, params));
  }

  /** Returns true if the client may be being asked something, or has set up what it wants to hear. */
  remembers(client: LegacyClient): boolean {
    const { questions, levels, subscriptions } = this;
    return !questions.isEmpty || levels.get(client) !== undefined || subscriptions.hasAny(client);
  }

  /** Forgets what the client wanted to hear. Returns the resources nobody is left for. */
  forget(client: LegacyClient): readonly string[] {
    this.levels.set(client, undefined);
    return this.subscriptions.removeClient(client);
  }

  /** Passes a request of the server on to the client of this call. Returns why it cannot be asked. */
  ask({ client, call }: SoleOne, question: Frame): BridgeError | undefined {
    const asked = client.asked(question);
    if (asked instanceof BridgeError) return asked;
    const opened = this.questions.open(client, question.id as JsonRpcId);
    const send = (): void => client.listener.fromServer(withId(asked, opened.id), call);
    client.askInTime(() => this.questions.isOpen(opened) && send(), asked.bytes.length);
    return undefined;
  }
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

  /** Returns true if the client has subscribed to anything. */
  hasAny(client: Client): boolean {
    return this.#ofClient.has(client);
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

  /** Notes the server's answer to a subscription, unless the subscription was given up meanwhile. */
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
   * Returns the clients that an update of this resource concerns. Servers may report a part of what was subscribed to,
   * so clients that subscribed to something above it count, too. [spec 2025-11-25 server/resources#subscriptions]
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
  #held: LogLevel | undefined;

  get(client: Client): LogLevel | undefined {
    return this.#levels.get(client);
  }

  /** Undefined: as if it had never asked. */
  set(client: Client, level: LogLevel | undefined): void {
    if (level === undefined) this.#levels.delete(client);
    else this.#levels.set(client, level);
  }

  /** From now on the server keeps this level or a more verbose one, whether a client wants it or not. */
  hold(level: LogLevel): void {
    this.#held = moreVerbose(this.#held, level);
  }

  /** From now on only the levels of clients count. */
  release(): void {
    this.#held = undefined;
  }

  /** The most verbose level that is held or that any client asked for; undefined: neither. */
  mostVerbose(): LogLevel | undefined {
    let most = this.#held;
    for (const level of this.#levels.values()) most = moreVerbose(most, level);
    return most;
  }

  /** A client that never set a level gets no log messages of a shared server: they may be about somebody else. */
  wants(client: Client, level: LogLevel): boolean {
    const wanted = this.#levels.get(client);
    return wanted !== undefined && severityOf(level) >= severityOf(wanted);
  }
}

function moreVerbose(one: LogLevel | undefined, other: LogLevel): LogLevel {
  return one !== undefined && severityOf(one) <= severityOf(other) ? one : other;
}

/** Elicitations whose completion may still be announced, and characters of their ids; later ones push out the first. */
const ELICITATION_LIMITS = { count: 1000, length: 64 * 1024 };

/** A request of the server that one client is answering. */
export interface Question {
  /** The id that the client gets: a number of the bridge's own, so that a restarted server cannot repeat one. */
  readonly id: number;
  readonly client: LegacyClient;
  readonly serverId: JsonRpcId;
}

/** The open requests of a shared server, and which client each went to. */
export class ServerQuestions {
  readonly #byId = new Map<number, Question>();
  readonly #byServerId = new Map<JsonRpcId, Question>();
  readonly #elicitations = new RecentNames<LegacyClient>(ELICITATION_LIMITS);
  #lastId = 0;

  /** True if no client is being asked anything, or was sent to a URL whose visit is not complete. */
  get isEmpty(): boolean {
    return this.#byId.size === 0 && this.#elicitations.size === 0;
  }

  open(client: LegacyClient, serverId: JsonRpcId): Question {
    this.#lastId += 1;
    const question: Question = { id: this.#lastId, client, serverId };
    this.#byId.set(question.id, question);
    this.#byServerId.set(serverId, question);
    return question;
  }

  /** Returns true if the question was neither answered nor withdrawn. */
  isOpen({ id }: Question): boolean {
    return this.#byId.has(id);
  }

  /** Returns the server's id of the question that is open under this id. */
  serverIdOf(id: JsonRpcId | undefined): JsonRpcId | undefined {
    return typeof id === 'number' ? this.#byId.get(id)?.serverId : undefined;
  }

  /** The question a client answers; undefined if it was never asked that. */
  takeAnswered(client: LegacyClient, id: JsonRpcId | undefined): Question | undefined {
    const question = typeof id === 'number' ? this.#byId.get(id) : undefined;
    if (question === undefined || question.client !== client) return undefined;
    this.#remove(question);
    return question;
  }

  /** The question the server withdraws. */
  takeWithdrawn(serverId: JsonRpcId): Question | undefined {
    const question = this.#byServerId.get(serverId);
    if (question !== undefined) this.#remove(question);
    return question;
  }

  takeOf(client: LegacyClient): readonly Question[] {
    const questions = [...this.#byId.values()].filter((question) => question.client === client);
    for (const question of questions) this.#remove(question);
    for (const [id, owner] of this.#elicitations) if (owner === client) this.#elicitations.delete(id);
    return questions;
  }

  takeAll(): readonly Question[] {
    const questions = [...this.#byId.values()];
    this.#byId.clear();
    this.#byServerId.clear();
    this.#elicitations.clear();
    return questions;
  }

  /** Remembers who was sent to a URL, for `notifications/elicitation/complete`. */
  noteElicitation(elicitationId: unknown, client: LegacyClient): void {
    if (typeof elicitationId === 'string') this.#elicitations.set(elicitationId, client);
  }

  clientOfElicitation(elicitationId: unknown): LegacyClient | undefined {
    return typeof elicitationId === 'string' ? this.#elicitations.get(elicitationId) : undefined;
  }

  #remove(question: Question): void {
    this.#byId.delete(question.id);
    if (this.#byServerId.get(question.serverId) === question) this.#byServerId.delete(question.serverId);
  }
}
