import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isPassed, principalOf } from '../../http/auth/callers.ts';
import { readRequestState } from '../../mcp/classify/input-responses.ts';
import { isTaskRequest } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { readTaskId } from '../../mcp/vocabulary/task-extension.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallerOwners } from '../ownership/caller-owners.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { LeavingStage } from './passed-request.ts';
import type { FailedOwner, Place, Search } from './router.ts';

export interface CallFinderOptions {
  readonly cluster: Pick<Cluster, 'tags' | 'peers' | 'self' | 'wasCalled'>;
  readonly owners: CallerOwners;
  readonly stage: () => LeavingStage;
  /**
   * Returns the name under which a caller's calls to this server are owned. Undefined means that the calls need no
   * owner, because no call affects another one.
   */
  readonly ownedName: (principal: string) => string | undefined;
}

/**
 * Finds the replica for a message of a modern client. A message that continues a call or task goes to the replica that
 * has it, any other to the owner of its caller.
 */
export class CallFinder {
  readonly #options: CallFinderOptions;

  constructor(options: CallFinderOptions) {
    this.#options = options;
  }

  search(frame: Frame, request: IncomingMessage): Search {
    const { cluster, ownedName, stage } = this.#options;
    const continued = continuedId(frame);
    const owner = continued === undefined ? undefined : cluster.tags.ownerOf(continued);
    if (continued === undefined || owner === undefined) {
      if (isPassed(request)) return stage() === 'draining' && continued === undefined ? LEAVING : HERE;
      const name = ownedName(principalOf(request));
      return name === undefined ? HERE : this.#searchNamed(name);
    }
    const share = shareOf(owner, continued);
    if (cluster.peers.isDead(owner.id) || cluster.wasCalled(owner.id)) return this.#searchNamed(share);
    if (isPassed(request) || owner.id === cluster.self.id) return HERE;
    return this.#searchContinued(owner, share);
  }

  /** Searches for the owner of a caller's calls, or of a share of the calls that a gone replica has left. */
  #searchNamed(name: string): Search {
    return { failed: undefined, find: (failed) => this.#findNamed(name, failed) };
  }

  #findNamed(name: string, failed: FailedOwner | undefined): Place | Promise<Place> {
    const { cluster, owners } = this.#options;
    if (failed !== undefined) owners.forget(name);
    const known = owners.find(name);
    const isKnown = known !== undefined && (known === 'here' || !cluster.peers.isDead(known.id));
    return isKnown ? known : owners.claim(name);
  }

  /**
   * Searches for a call that goes on. If its owner is gone, another replica may have taken over a share of its calls,
   * or can do so. An owner that cannot be reached either returns, or is found dead by the other replicas.
   */
  #searchContinued(owner: Owner, share: string): Search {
    const { cluster } = this.#options;
    let isLeft = false;
    const find = async (failed: FailedOwner): Promise<Place> => {
      if (isLeft) return this.#findNamed(share, failed);
      if (failed.why === 'unreachable' && (await cluster.peers.judge(owner.id)) !== 'dead') return owner;
      isLeft = true;
      return this.#findNamed(share, undefined);
    };
    return { failed: undefined, find: (failed) => (failed === undefined ? owner : find(failed)) };
  }
}

const HERE: Search = { failed: undefined, find: () => 'here' };
const LEAVING: Search = { failed: undefined, find: () => 'leaving' };

/**
 * Number of shares that the calls of a gone replica are split into. It is fixed, because clients choose ids: the number
 * of records does not grow with the number of ids.
 */
const SHARES = 64;

/**
 * Returns the name of the share that this id belongs to. One replica at a time owns a share of a gone replica's calls.
 */
function shareOf(owner: Owner, id: string): string {
  const [first = 0] = createHash('sha256').update(id).digest();
  return `left by ${owner.id}, part ${first % SHARES}`;
}

/** Returns the id of the task or call that a request continues, or undefined if it names none. */
function continuedId(frame: Frame): string | undefined {
  if (isTaskRequest(frame.method ?? '')) return readTaskId(frame);
  const state = readRequestState(frame)?.text;
  return state === undefined ? undefined : callIdIn(state);
}

/**
 * Reads the call id that a request state claims. The id is not verified here; it only decides which replica checks the
 * seal of the state.
 */
function callIdIn(state: string): string | undefined {
  try {
    const payload = asFields(JSON.parse(Buffer.from(state.split('.', 1)[0] ?? '', 'base64url').toString()));
    return typeof payload?.c === 'string' ? payload.c : undefined;
  } catch {
    return undefined;
  }
}
