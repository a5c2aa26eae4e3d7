import { createHash } from 'node:crypto';
import type { Deps } from '../../deps.ts';
import type { RoutedCall } from '../../downstream/mcp-endpoint.ts';
import { toBridgeError } from '../../errors.ts';
import { authenticatedNameOf, isPassed, principalOf } from '../../http/auth/callers.ts';
import { respondError } from '../../http/server/respond.ts';
import { readRequestState } from '../../mcp/classify/input-responses.ts';
import { isTaskRequest } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { readTaskId } from '../../mcp/vocabulary/task-extension.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallerOwners } from '../ownership/caller-owners.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { Forwarder } from './forwarder.ts';
import { type LeavingStage, respondNotHere } from './passed-request.ts';
import { UNREACHABLE } from './session-router.ts';

export interface CallRouterOptions {
  readonly cluster: Cluster;
  readonly owners: CallerOwners;
  readonly forwarder: Pick<Forwarder, 'forward'>;
  readonly stage: () => LeavingStage;
  /**
   * Returns the name under which a caller's calls to this server are owned. Undefined means that the calls need no
   * owner, because no call affects another one.
   */
  readonly ownedName: (principal: string) => string | undefined;
  readonly deps: Pick<Deps, 'log' | 'clock'>;
}

/** Checks of an owner per lease. */
const POLLS = 12;
const WAITED_LEASES = 2;

/**
 * Routes the requests of modern clients. A request that continues a call or task goes to the replica that has it, any
 * other to the owner of its caller.
 */
export class CallRouter {
  readonly #options: CallRouterOptions;

  constructor(options: CallRouterOptions) {
    this.#options = options;
  }

  /**
   * Calls `serve` synchronously if the request is known to belong here and this replica's lease needs no confirmation.
   */
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
      if (isPassed(request))
        return stage() === 'draining' && continued === undefined ? respondNotHere(response) : serve();
      const name = ownedName(principalOf(request));
      return name === undefined ? serve() : this.#toOwnerOf(call, name);
    }
    const share = shareOf(owner, continued);
    const isAbandoned = cluster.peers.isDead(owner.id) || cluster.wasCalled(owner.id);
    if (isPassed(request)) return isAbandoned ? void this.#serveIfOwned(call, share) : serve();
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

  /**
   * Serves a forwarded request that was meant for a former identity of this replica or for a dead owner, if this
   * replica can take over that owner's share.
   */
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
   * Forwards a request to the owner of the call that it continues. If that owner is gone, another replica may have
   * taken over the call, or can do so. An owner that cannot be reached either returns, or is found dead by the other
   * replicas, before the deadline.
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

  /** Calls `failed` if the owner did nothing and no response has been sent. */
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
  /** Until this time the owner may still be found. */
  readonly deadlineMs: number;
}

interface ContinuedCall {
  readonly owner: Owner;
  /** Name of the share of the owner's calls that this call belongs to, for when the owner is gone; see `shareOf`. */
  readonly share: string;
  readonly deadlineMs: number;
}

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

function idOf({ frame }: RoutedCall): Frame['id'] {
  return frame.id;
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
