import { createHash } from 'node:crypto';
import type { CallerOwners } from '../../cluster/caller-owners.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import type { Owner } from '../../cluster/owner-tags.ts';
import type { Deps } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import { authenticatedNameOf, principalOf } from '../../http/auth/callers.ts';
import { respondError } from '../../http/server/respond.ts';
import { readRequestState } from '../../mcp/classify/input-responses.ts';
import { isTaskRequest } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { readTaskId } from '../../mcp/vocabulary/task-extension.ts';
import type { Frame } from '../../wire/frame.ts';
import type { RoutedCall } from '../mcp-endpoint.ts';
import type { Forwarder } from './forwarder.ts';
import { hasHopped, type LeavingStage, respondNotHere } from './hops.ts';
import { UNREACHABLE } from './session-router.ts';

export interface CallRouterOptions {
  readonly cluster: Cluster;
  readonly owners: CallerOwners;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  readonly stage: () => LeavingStage;
  /** Under what name a caller's calls to this server are owned; undefined: what one of them does no other one sees. */
  readonly ownedName: (principal: string) => string | undefined;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

/** In parts of the time a replica may be silent for. */
const POLLS = 12;
const WAITED_LEASES = 2;

/** Leads the requests of modern callers: what continues something to where that is, the others to their caller's replica. */
export class CallRouter {
  readonly #options: CallRouterOptions;

  constructor(options: CallRouterOptions) {
    this.#options = options;
  }

  /** Calls `serve` at once where it is known that it belongs here, and no other replica can have taken it over. */
  route(call: RoutedCall): void {
    const confirming = this.#options.cluster.confirm();
    if (confirming === undefined) return this.#route(call);
    void confirming.then(() => {
      if (!call.response.destroyed) this.#route(call);
    });
  }

  #route(call: RoutedCall): void {
    const { cluster, ownedName, stage, deps } = this.#options;
    const { frame, request, response, serve } = call;
    const continued = continuedId(frame);
    const owner = continued === undefined ? undefined : cluster.tags.ownerOf(continued);
    if (continued === undefined || owner === undefined) {
      if (hasHopped(request))
        return stage() === 'draining' && continued === undefined ? respondNotHere(response) : serve();
      const name = ownedName(principalOf(request));
      return name === undefined ? serve() : this.#toOwnerOf(call, name);
    }
    const share = shareOf(owner, continued);
    const isAbandoned = cluster.peers.isDead(owner.id) || cluster.wasCalled(owner.id);
    if (hasHopped(request)) return isAbandoned ? void this.#serveIfOwned(call, share) : serve();
    if (isAbandoned) return this.#toOwnerOf(call, share);
    if (owner.id === cluster.self.id) return serve();
    this.#toContinued(call, { owner, share, deadlineMs: deps.clock.now() + WAITED_LEASES * cluster.leaseMs });
  }

  #toOwnerOf(call: RoutedCall, name: string): void {
    const { cluster, owners, deps } = this.#options;
    const known = owners.find(name);
    if (known === 'self') return call.serve();
    const deadlineMs = deps.clock.now() + WAITED_LEASES * cluster.leaseMs;
    if (known !== undefined && !cluster.peers.isDead(known.id)) return this.#toOwner(call, { name, deadlineMs }, known);
    void this.#claim(call, { name, deadlineMs });
  }

  /** Another replica has passed it on to the one that this has been. */
  async #serveIfOwned({ response, serve, frame }: RoutedCall, name: string): Promise<void> {
    const { owners } = this.#options;
    try {
      const owner = owners.find(name) ?? (await owners.claim(name));
      if (response.destroyed) return;
      if (owner === 'self') serve();
      else respondNotHere(response);
    } catch (thrown) {
      respondError(response, toBridgeError(thrown), frame.id);
    }
  }

  /**
   * Where the owner is gone, another replica may have gone on with what it would have continued, or can do so. An owner that
   * cannot be reached is gone, or comes back, within the time in which the others find that out.
   */
  #toContinued(call: RoutedCall, continued: ContinuedCall): void {
    this.#forward(call, continued.owner, (outcome) => {
      if (outcome === 'not-here') this.#toOwnerOf(call, continued.share);
      else void this.#goOnIfGone(call, continued);
    });
  }

  async #goOnIfGone(call: RoutedCall, continued: ContinuedCall): Promise<void> {
    const { cluster, deps } = this.#options;
    const { response } = call;
    try {
      const verdict = await cluster.peers.judge(continued.owner.id);
      if (response.destroyed) return;
      if (verdict === 'dead') return this.#toOwnerOf(call, continued.share);
      if (deps.clock.now() > continued.deadlineMs) return respondError(response, UNREACHABLE, idOf(call));
      deps.clock.after(cluster.leaseMs / POLLS, () => {
        if (!response.destroyed) this.#toContinued(call, continued);
      });
    } catch (thrown) {
      respondError(response, toBridgeError(thrown), idOf(call));
    }
  }

  #toOwner(call: RoutedCall, owned: OwnedCall, owner: Owner): void {
    this.#forward(call, owner, () => {
      this.#options.owners.forget(owned.name);
      void this.#claim(call, owned);
    });
  }

  async #claim(call: RoutedCall, owned: OwnedCall): Promise<void> {
    const { owners, cluster, deps } = this.#options;
    const { response, serve } = call;
    try {
      const owner = await owners.claim(owned.name);
      if (response.destroyed) return;
      if (owner === 'self') return serve();
      if (deps.clock.now() > owned.deadlineMs) return respondError(response, UNREACHABLE, idOf(call));
      this.#forward(call, owner, () => {
        owners.forget(owned.name);
        deps.clock.after(cluster.leaseMs / POLLS, () => void this.#claim(call, owned));
      });
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (error.code === 'ERR_INTERNAL') deps.log.error({ err: error.cause }, error.message);
      respondError(response, error, idOf(call));
    }
  }

  /** Calls `failed` when nothing was done and nothing responded. */
  #forward(
    { frame, request, response }: RoutedCall,
    owner: Owner,
    failed: (why: 'unreachable' | 'not-here') => void,
  ): void {
    const forwarded = { request, response, principal: authenticatedNameOf(request), body: frame.bytes };
    this.#options.forwarder.forward(owner, forwarded, ({ kind }) => {
      if (kind !== 'responded') failed(kind);
    });
  }
}

interface OwnedCall {
  readonly name: string;
  /** Until then its owner may still be found. */
  readonly deadlineMs: number;
}

interface ContinuedCall {
  readonly owner: Owner;
  /** What its owner would leave behind. */
  readonly share: string;
  readonly deadlineMs: number;
}

/** So many parts has what a replica leaves behind. Clients choose ids, so what is stored does not grow with their number. */
const SHARES = 64;

/** The part of what a replica may leave behind that this id belongs to. One replica at a time goes on with it. */
function shareOf(owner: Owner, id: string): string {
  const [first = 0] = createHash('sha256').update(id).digest();
  return `left by ${owner.id}, part ${first % SHARES}`;
}

function idOf({ frame }: RoutedCall): Frame['id'] {
  return frame.id;
}

/** The id of what a request goes on with; undefined: nothing that a replica has given out. */
function continuedId(frame: Frame): string | undefined {
  if (isTaskRequest(frame.method ?? '')) return readTaskId(frame);
  const state = readRequestState(frame)?.text;
  return state === undefined ? undefined : callIdIn(state);
}

/** What a state says of itself, whether or not that is true: it only says where its seal can be checked. */
function callIdIn(state: string): string | undefined {
  try {
    const payload = asFields(JSON.parse(Buffer.from(state.split('.', 1)[0] ?? '', 'base64url').toString()));
    return typeof payload?.c === 'string' ? payload.c : undefined;
  } catch {
    return undefined;
  }
}
