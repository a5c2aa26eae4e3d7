import type { BridgeError } from '../../../errors.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { CallContext, ServerListener, UpstreamLink } from '../../../relay/ports.ts';
import type { FindLink, FoundLink } from '../found-link.ts';
import type { JoinedDialers } from '../joined-dialers.ts';
import { DetectingLink } from '../sessions/detecting-link.ts';
import { CheckedRequest, type Refuse } from './checked-request.ts';
import { ConfirmingListener } from './confirming-listener.ts';
import type { RequestEras } from './request-eras.ts';

/** Links for the requests of modern clients to a server at a URL, whichever era it is of. */
export class RequestLinks {
  readonly #eras: RequestEras;
  readonly #joined: JoinedDialers;
  readonly #links = new Set<DetectingLink>();
  readonly #doubted = new WeakSet<Exchange>();

  constructor(eras: RequestEras, joined: JoinedDialers) {
    this.#eras = eras;
    this.#joined = joined;
  }

  /** The server refused this request as no modern server does; the refusal follows. */
  doubted(exchange: Exchange): void {
    this.#doubted.add(exchange);
  }

  dial(listener: ServerListener, context: CallContext): UpstreamLink {
    const { known } = this.#eras;
    if (known === undefined) return this.#detect(listener, (first, signal) => this.#find(context, first, signal));
    return known === 'modern'
      ? this.#dialModern(listener, context)
      : this.#joined.modernToLegacy.dial(listener, context);
  }

  #detect(listener: ServerListener, findLink: FindLink): DetectingLink {
    const left = (): void => void this.#links.delete(link);
    const link = new DetectingLink({ listener, first: 'any', findLink, left });
    this.#links.add(link);
    return link;
  }

  async #find(context: CallContext, ...[{ exchange }, signal]: Parameters<FindLink>): Promise<FoundLink> {
    const era = await this.#eras.find(exchange?.lane.headers, signal);
    if (era.kind === 'modern') return found((client) => this.#dialModern(client, context));
    return found((client) => this.#joined.modernToLegacy.dial(new ConfirmingListener(client, era), context));
  }

  /** A link for many requests stays what it is; only the next one is found anew. */
  #dialModern(listener: ServerListener, context: CallContext): UpstreamLink {
    const { modern } = this.#joined;
    if (context.metadata === undefined) return modern.dial(listener, context);
    return new CheckedRequest({
      listener,
      dial: (checking) => modern.dial(checking, context),
      doubted: this.#doubted,
      dialAgain: (refuse) => this.#detect(listener, (first, signal) => this.#findAgain(refuse, context, first, signal)),
    });
  }

  async #findAgain(refuse: Refuse, context: CallContext, ...[first, signal]: Parameters<FindLink>): Promise<FoundLink> {
    const era = await this.#eras.find(first.exchange?.lane.headers, signal);
    // It is modern after all, so what it said is its answer.
    if (era.kind === 'modern') return found((client) => new RefusedLink(() => refuse(client)));
    return found((client) => this.#joined.modernToLegacy.dial(new ConfirmingListener(client, era), context));
  }

  close(reason: BridgeError): void {
    for (const link of [...this.#links]) link.close(reason);
  }
}

function found(open: (client: ServerListener) => UpstreamLink): FoundLink {
  return { open, drop: () => {} };
}

/** A server that answers every request in the same way. */
class RefusedLink implements UpstreamLink {
  readonly #refuse: () => void;

  constructor(refuse: () => void) {
    this.#refuse = refuse;
  }

  get process(): undefined {
    return undefined;
  }

  send({ kind }: { readonly kind: string }): boolean {
    if (kind === 'request') this.#refuse();
    return true;
  }

  pause(): void {}
  resume(): void {}
  close(): void {}
}
