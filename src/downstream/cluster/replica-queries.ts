import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Cluster } from '../../cluster/cluster.ts';
import type { Owner } from '../../cluster/owner-tags.ts';
import type { Clock } from '../../deps.ts';
import type { OtherReplicas, ReplicaAnswer } from '../../relay/other-replicas.ts';
import { HOP_HEADER } from './hops.ts';

/** For one replica to answer, and for all of them. */
const ANSWER_MS = 2000;
const ALL_MS = 5000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Asked at a time: their answers are in memory together. */
const MAX_AT_ONCE = 8;
const MAX_ASKED = 100;
/** The name under which the others are asked: this replica has checked who looks, and they know nobody of that name. */
const LOOKER = 'status';

/** What is needed of the cluster. */
interface Asked extends Pick<Cluster, 'self' | 'passes'> {
  readonly members: Pick<Cluster['members'], 'others'>;
}

/** Asks the other replicas for what each of them knows. Who may know it is decided before. */
export class ReplicaQueries implements OtherReplicas {
  readonly #cluster: Asked;
  readonly #clock: Clock;

  constructor(cluster: Asked, clock: Clock) {
    this.#cluster = cluster;
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

  /** Rejects with ERR_STORE_UNAVAILABLE. */
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
    const { passes } = this.#cluster;
    const url = new URL(owner.address);
    const pass = passes.issue(owner.id, { method: 'GET', target }, LOOKER);
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    return new Promise((resolve) => {
      const request = send({
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port === '' ? undefined : Number(url.port),
        path: target,
        headers: { [HOP_HEADER]: pass },
        agent: false,
      });
      const end = (answer: ReplicaAnswer): void => {
        stopTimer();
        resolve(answer);
        request.destroy();
      };
      const stopTimer = this.#clock.after(leftMs, () => end(silent(owner, LATE)));
      request.on('error', (error: NodeJS.ErrnoException) => end(silent(owner, error.code ?? 'it cannot be reached')));
      request.on('response', (response) => {
        if (response.statusCode !== 200) return end(silent(owner, `it answers ${response.statusCode}`));
        collect(response, (body) =>
          end(typeof body === 'string' ? silent(owner, body) : { kind: 'answered', address: owner.address, body }),
        );
      });
      request.end();
    });
  }
}

const LATE = 'it did not answer in time';

function silent({ address }: Owner, problem: string): ReplicaAnswer {
  return { kind: 'silent', address, problem };
}

/** Calls `done` with the body, or with what is wrong with it. */
function collect(response: IncomingMessage, done: (body: Buffer | string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > MAX_ANSWER_BYTES) done(`its answer has more than ${MAX_ANSWER_BYTES} bytes`);
  });
  response.on('end', () => done(Buffer.concat(chunks)));
  response.on('close', () => done('its answer broke off'));
}
