import type { Deps } from '../../../deps.ts';
import type { Owner } from '../../ownership/owner-tags.ts';
import type { PeerLeases } from '../../ownership/peer-leases.ts';
import { EntryLink } from './entry-link.ts';
import type { LinkSecrets } from './link-secrets.ts';
import { type OpenedLink, openLink } from './open-link.ts';

export interface EntryLinksOptions {
  readonly secrets: LinkSecrets;
  readonly peers: Pick<PeerLeases, 'isDead' | 'watch'>;
  /** Time for which a replica may be silent. */
  readonly leaseMs: number;
  readonly deps: Pick<Deps, 'clock' | 'log'>;
}

/** A link that accepts requests, or the reason why there is none. In the latter case no part of a request was sent. */
export type ReachedOwner =
  | { readonly kind: 'reached'; readonly link: EntryLink }
  | Exclude<OpenedLink, { readonly kind: 'opened' }>;

interface OpeningLink {
  readonly kind: 'opening';
  readonly waiting: Set<(reached: ReachedOwner) => void>;
  readonly giveUp: () => void;
}

interface UsableLink {
  readonly kind: 'open';
  readonly link: EntryLink;
}

/** Checks of owners and links per lease. */
const LOOKS = 6;
/** An idle link is closed after this time. Middleboxes may drop an idle connection after a minute. */
const IDLE_LINK_MS = 30_000;

/** The links that this replica has opened, one to each owner, each opened when first needed. */
export class EntryLinks {
  readonly #options: EntryLinksOptions;
  readonly #byOwner = new Map<string, OpeningLink | UsableLink>();
  /** All links, including those that accept no further requests. */
  readonly #links = new Map<EntryLink, Owner>();
  #stopTimer: (() => void) | undefined;

  constructor(options: EntryLinksOptions) {
    this.#options = options;
  }

  /** Calls `reached` once, synchronously if a link is open. Returns a function that cancels the call. */
  reach(owner: Owner, reached: (result: ReachedOwner) => void): () => void {
    this.#options.peers.watch(owner.id);
    const known = this.#byOwner.get(owner.id);
    if (known?.kind === 'open') {
      reached({ kind: 'reached', link: known.link });
      return NOTHING;
    }
    const { waiting } = known ?? this.#open(owner);
    waiting.add(reached);
    return () => void waiting.delete(reached);
  }

  #open(owner: Owner): OpeningLink {
    const { secrets, deps, leaseMs } = this.#options;
    const { clock } = deps;
    const giveUp = openLink(owner, { secrets, clock }, (opened) => this.#opened(owner, opened));
    const opening: OpeningLink = { kind: 'opening', waiting: new Set(), giveUp };
    this.#byOwner.set(owner.id, opening);
    this.#stopTimer ??= clock.every(leaseMs / LOOKS, () => this.#look());
    return opening;
  }

  #opened(owner: Owner, opened: OpenedLink): void {
    const { log } = this.#options.deps;
    const opening = this.#byOwner.get(owner.id);
    this.#byOwner.delete(owner.id);
    if (opening?.kind !== 'opening') return;
    if (opened.kind !== 'opened') {
      log.debug({ owner: owner.address, ...opened }, 'no link to another replica could be opened');
      for (const reached of opening.waiting) reached(opened);
      return;
    }
    const link = new EntryLink({
      socket: opened.socket,
      onRetired: () => {
        const known = this.#byOwner.get(owner.id);
        if (known?.kind === 'open' && known.link === link) this.#byOwner.delete(owner.id);
      },
      onClosed: (reason) => {
        log.debug({ owner: owner.address, reason }, 'a link to another replica is closed');
        this.#links.delete(link);
      },
    });
    this.#byOwner.set(owner.id, { kind: 'open', link });
    this.#links.set(link, owner);
    for (const reached of opening.waiting) reached({ kind: 'reached', link });
  }

  /** Checks owners and links. A stopped process keeps its connections open, so only its lease shows that it is gone. */
  #look(): void {
    const { peers, leaseMs } = this.#options;
    for (const [ownerId, known] of [...this.#byOwner]) {
      if (known.kind === 'opening' && peers.isDead(ownerId)) this.#giveUp(ownerId, known);
    }
    const idle = Math.ceil((IDLE_LINK_MS * LOOKS) / leaseMs);
    for (const [link, { id }] of [...this.#links]) {
      if (peers.isDead(id)) link.cut('its owner is dead');
      else {
        if (link.isBusy) peers.watch(id);
        link.look({ silent: LOOKS, idle });
      }
    }
    if (this.#byOwner.size > 0 || this.#links.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #giveUp(ownerId: string, { waiting, giveUp }: OpeningLink): void {
    this.#byOwner.delete(ownerId);
    giveUp();
    for (const reached of waiting) reached({ kind: 'unreachable', reason: 'its owner is dead' });
  }

  /** Cuts all links. Requests under way fail with `lost`. */
  close(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (const [ownerId, known] of [...this.#byOwner]) if (known.kind === 'opening') this.#giveUp(ownerId, known);
    for (const link of [...this.#links.keys()]) link.cut('this replica ends');
  }
}

const NOTHING = (): void => {};
