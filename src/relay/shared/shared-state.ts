import { LinkedList } from '../../collections/linked-list.ts';
import type { Clock } from '../../deps.ts';
import type { Frame } from '../../wire/frame.ts';
import type { UpstreamLink } from '../ports.ts';
import type { ClientLink } from './client-link.ts';
import { GivenUpCalls } from './given-up-calls.ts';
import type { InitializeResult } from './initialize-result.ts';
import { LogLevels } from './log-levels.ts';
import { PendingCalls } from './pending-calls.ts';
import { ServerQuestions } from './server-questions.ts';
import { SubscriptionTable } from './subscription-table.ts';
import { UnclearQuestions } from './unclear-questions.ts';
import { WithdrawnRequests } from './withdrawn-requests.ts';

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
