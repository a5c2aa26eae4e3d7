import { RecentNames } from '../../collections/bounded-collections.ts';
import type { ClusterKey } from '../store/cluster-key.ts';

/** The replica that owns a session or another resource. */
export interface Owner {
  /** Names one run of the replica. A restarted replica has a new id. */
  readonly id: string;
  /** An http or https URL without path. */
  readonly address: string;
}

const CONTEXT = 'owner of an id';
const SEPARATOR = '.';
/** Tags are shorter than this. Longer text is not decoded. */
const MAX_TAG_LENGTH = 512;
/** Bounds of the cache, because clients choose the ids that are looked up. */
const KNOWN_LIMITS = { count: 2000, length: 1_000_000 };

/**
 * Ids that name their owner to replicas only. An id is an unguessable random part followed by the sealed owner. A
 * replica uses the same tag in all its ids, so an id is usually resolved from a small cache.
 */
export class OwnerTags {
  readonly #key: ClusterKey;
  readonly #known = new RecentNames<Owner>(KNOWN_LIMITS);

  constructor(key: ClusterKey) {
    this.#key = key;
  }

  seal(owner: Owner): string {
    return this.#key.seal(Buffer.from(JSON.stringify([owner.id, owner.address])), CONTEXT).toString('base64url');
  }

  join(randomPart: string, tag: string): string {
    return `${randomPart}${SEPARATOR}${tag}`;
  }

  /** Returns the owner of an id, or undefined if no key of ours opens its tag. */
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
