import type { Clock } from '../../deps.ts';
import type { OtherReplicas, ReplicaAnswer } from '../../observe/status/other-replicas.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { EntryLinks, ReachedOwner } from './link/entry-links.ts';
import type { EntryStream, EntryStreamListener } from './link/entry-stream.ts';
import type { ReturnedHead } from './link/heads.ts';

/** Time limit for the answer of one replica, and for those of all. */
const ANSWER_MS = 2000;
const ALL_MS = 5000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Replicas queried concurrently. Their answers are in memory at the same time. */
const MAX_AT_ONCE = 8;
const MAX_ASKED = 100;
/**
 * Caller name of these queries. The permission of the real caller has been checked here, and no caller has this name at
 * the other replicas.
 */
const LOOKER = 'status';

interface Asked extends Pick<Cluster, 'self'> {
  readonly members: Pick<Cluster['members'], 'others'>;
}

/** Queries the other replicas for the status each of them knows. The permission to see it is checked before. */
export class ReplicaQueries implements OtherReplicas {
  readonly #cluster: Asked;
  readonly #links: Pick<EntryLinks, 'reach'>;
  readonly #clock: Clock;

  constructor(cluster: Asked, { links, clock }: { readonly links: Pick<EntryLinks, 'reach'>; readonly clock: Clock }) {
    this.#cluster = cluster;
    this.#links = links;
    this.#clock = clock;
  }

  get ownAddress(): string {
    return this.#cluster.self.address;
  }

  /** Addresses of all replicas. Rejects with ERR_STORE_UNAVAILABLE. */
  async addresses(): Promise<readonly string[]> {
    const others = await this.#cluster.members.others();
    return [this.ownAddress, ...others.map(({ address }) => address)].sort();
  }

  /**
   * Sends GET `target` to all other replicas and returns their answers by address. Rejects with ERR_STORE_UNAVAILABLE.
   */
  async ask(target: string): Promise<readonly ReplicaAnswer[]> {
    const others = [...(await this.#cluster.members.others())].sort((a, b) => (a.address < b.address ? -1 : 1));
    const deadlineMs = this.#clock.now() + ALL_MS;
    const answers: ReplicaAnswer[] = [];
    const waiting = others.slice(0, MAX_ASKED);
    const askNext = async (): Promise<void> => {
      for (let owner = waiting.shift(); owner !== undefined; owner = waiting.shift()) {
        const leftMs = Math.min(ANSWER_MS, deadlineMs - this.#clock.now());
        answers.push(leftMs > 0 ? await this.#askOne(owner, target, leftMs) : silent(owner, LATE));
      }
    };
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, askNext));
    for (const owner of others.slice(MAX_ASKED)) answers.push(silent(owner, `more than ${MAX_ASKED} are not asked`));
    return answers.sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  #askOne(owner: Owner, target: string, leftMs: number): Promise<ReplicaAnswer> {
    return new Promise((resolve) => {
      const question = new Question(target, (answer) => {
        stopTimer();
        resolve(
          typeof answer === 'string'
            ? silent(owner, answer)
            : { kind: 'answered', address: owner.address, body: answer },
        );
      });
      const stopTimer = this.#clock.after(leftMs, () => question.giveUp(LATE));
      question.ask(owner, this.#links);
    });
  }
}

const LATE = 'it did not answer in time';
const NOTHING = (): void => {};

function silent({ address }: Owner, problem: string): ReplicaAnswer {
  return { kind: 'silent', address, problem };
}

/** A query to one replica. `done` gets the body of the answer, or a text that says why there is none. */
class Question implements EntryStreamListener {
  readonly #target: string;
  readonly #done: (answer: Buffer | string) => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #stream: EntryStream | undefined;
  #takeBack = NOTHING;
  #isOver = false;

  constructor(target: string, done: (answer: Buffer | string) => void) {
    this.#target = target;
    this.#done = done;
  }

  ask(owner: Owner, links: Pick<EntryLinks, 'reach'>): void {
    this.#takeBack = links.reach(owner, (reached) => this.#reached(reached));
  }

  #reached(reached: ReachedOwner): void {
    if (reached.kind === 'unreachable') return this.#end(reached.reason);
    if (reached.kind === 'not-here') return this.#end('another replica is there now');
    this.#stream = reached.link.open({ method: 'GET', target: this.#target, principal: LOOKER, headers: [] }, this);
    if (this.#stream === undefined) this.#end('it takes nothing');
    else this.#stream.finish();
  }

  responded({ status }: ReturnedHead): void {
    if (status !== 200) this.giveUp(`it answers ${status}`);
  }

  came(bytes: Buffer): void {
    this.#bytes += bytes.length;
    this.#chunks.push(bytes);
    if (this.#bytes > MAX_ANSWER_BYTES) this.giveUp(`its answer has more than ${MAX_ANSWER_BYTES} bytes`);
    else this.#stream?.read(bytes.length);
  }

  completed(last: Buffer): void {
    this.#chunks.push(last);
    this.#end(Buffer.concat(this.#chunks));
  }

  drained(): void {}

  failed(_how: 'unserved' | 'cut' | 'lost', reason: string): void {
    this.#end(reason);
  }

  giveUp(problem: string): void {
    this.#takeBack();
    this.#stream?.leave();
    this.#end(problem);
  }

  #end(answer: Buffer | string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#done(answer);
  }
}
