import { RecentNames } from '../collections/bounded-collections.ts';
import type { ClusterKey } from '../store/cluster-key.ts';

/** A replica that has something, and where the others reach it. */
export interface Owner {
  /** Names one run of the replica: when it starts anew, it has another. */
  readonly id: string;
  /** An http or https URL without path. */
  readonly address: string;
}

const CONTEXT = 'owner of an id';
const SEPARATOR = '.';
/** Tags are shorter; whatever is longer is none, and is not looked at. */
const MAX_TAG_LENGTH = 512;
/** Clients choose what is looked up, so that what is known of it is bounded. */
const KNOWN_LIMITS = { count: 2000, length: 1_000_000 };

/**
 * Ids that say, to replicas only, where they belong: a random part, which nobody can guess, and the sealed owner. The tag
 * of a replica is the same in all its ids, so that opening one is a look into a small table.
 */
export class OwnerTags {
  readonly #key: ClusterKey;
  readonly #known = new RecentNames<Owner>(KNOWN_LIMITS);

  constructor(key: ClusterKey) {
    this.#key = key;
  }

  /** The tag of an owner. */
  seal(owner: Owner): string {
    return this.#key.seal(Buffer.from(JSON.stringify([owner.id, owner.address])), CONTEXT).toString('base64url');
  }

  join(randomPart: string, tag: string): string {
    return `${randomPart}${SEPARATOR}${tag}`;
  }

  /** Whose id this is; undefined: nobody's, as far as our keys can tell. */
  ownerOf(id: string): Owner | undefined {
    const at = id.lastIndexOf(SEPARATOR);
    if (at < 0 || id.length - at > MAX_TAG_LENGTH) return undefined;
    const tag = id.slice(at + 1);
    const known = this.#known.get(tag);
    if (known !== undefined) return known;
    const opened = this.#key.open(Buffer.from(tag, 'base64url'), CONTEXT);
    if (opened === undefined) return undefined;
    const [ownerId, address] = JSON.parse(opened.toString()) as [string, string]; // sealed by a replica
    const owner = { id: ownerId, address };
    this.#known.set(tag, owner, ownerId.length + address.length);
    return owner;
  }
}
