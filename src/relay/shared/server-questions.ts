import { RecentNames } from '../../collections/recent-names.ts';
import type { JsonRpcId } from '../../wire/frame.ts';
import type { ClientLink } from './client-link.ts';

/** Elicitations whose completion may still be announced, and characters of their ids; later ones push out the first. */
const ELICITATION_LIMITS = { count: 1000, length: 64 * 1024 };

/** A request of the server that one client is answering. */
export interface Question {
  /** Its id towards the client: a number of the bridge's own, so that a restarted server cannot repeat one. */
  readonly id: number;
  readonly client: ClientLink;
  readonly serverId: JsonRpcId;
}

/** The open requests of a shared server, and which client each went to. */
export class ServerQuestions {
  readonly #byId = new Map<number, Question>();
  readonly #byServerId = new Map<JsonRpcId, Question>();
  readonly #elicitations = new RecentNames<ClientLink>(ELICITATION_LIMITS);
  #lastId = 0;

  open(client: ClientLink, serverId: JsonRpcId): Question {
    this.#lastId += 1;
    const question: Question = { id: this.#lastId, client, serverId };
    this.#byId.set(question.id, question);
    this.#byServerId.set(serverId, question);
    return question;
  }

  /** Neither answered nor withdrawn. */
  isOpen({ id }: Question): boolean {
    return this.#byId.has(id);
  }

  /** The question a client answers; undefined if it was never asked that. */
  takeAnswered(client: ClientLink, id: JsonRpcId | undefined): Question | undefined {
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

  takeOf(client: ClientLink): readonly Question[] {
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
  noteElicitation(elicitationId: unknown, client: ClientLink): void {
    if (typeof elicitationId === 'string') this.#elicitations.set(elicitationId, client);
  }

  clientOfElicitation(elicitationId: unknown): ClientLink | undefined {
    return typeof elicitationId === 'string' ? this.#elicitations.get(elicitationId) : undefined;
  }

  #remove(question: Question): void {
    this.#byId.delete(question.id);
    if (this.#byServerId.get(question.serverId) === question) this.#byServerId.delete(question.serverId);
  }
}
