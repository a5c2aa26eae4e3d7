import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ClusterKey } from '../../store/cluster-key.ts';

/** First message of the replica that opens a link. `judge` checks the answer to it. */
export interface LinkOffer {
  readonly text: string;
  judge(answer: string): LinkVerdict;
}

/**
 * Result of checking the answer to an offer.
 * - `accepted`: the other end has the cluster key and is the replica's run that was meant. `key` has 32 bytes, belongs
 *   to this link alone, and is known to both ends only.
 * - `not-here`: the other end has the cluster key, but is not that run.
 * - `invalid`: the answer was not made for this offer with the cluster key.
 */
export type LinkVerdict =
  | { readonly kind: 'accepted'; readonly key: Buffer }
  | { readonly kind: 'not-here' }
  | { readonly kind: 'invalid' };

/** Answer to an offer. `invalid` means that the offer was not made with the cluster key. */
export type LinkAnswer =
  | { readonly kind: 'accepted'; readonly text: string; readonly key: Buffer }
  | { readonly kind: 'not-here'; readonly text: string }
  | { readonly kind: 'invalid' };

const NONCE_BYTES = 32;
const KEY_BYTES = 32;
/** Longest offer or answer that is parsed. Valid ones are shorter, and text of this length is cheap to check. */
const MAX_LENGTH = 512;
/** Ids of both runs, nonce and proof. Ids contain no separator. */
const OFFER = /^([\w-]{1,64})\.([\w-]{1,64})\.([\w-]{43})\.([\w-]{43})$/;
const ANSWER = /^([\w-]{43})\.([\w-]{43})$/;

/**
 * Mutual authentication of two replicas by the cluster key, with a key for the link as its result. Each side chooses a
 * random number. The link's key is derived from the cluster key and all that was exchanged, including the names of both
 * runs, so a recorded exchange is useless for another link.
 */
export class LinkSecrets {
  readonly #key: ClusterKey;
  readonly #ownIds: () => readonly [string, ...string[]];

  /** @param ownIds current and former ids of this replica, the current one first */
  constructor(key: ClusterKey, ownIds: () => readonly [string, ...string[]]) {
    this.#key = key;
    this.#ownIds = ownIds;
  }

  /** Creates an offer to the run of a replica with this id. */
  offer(ownerId: string): LinkOffer {
    const [ownId] = this.#ownIds();
    const [secret] = this.#secretsOf(ownId, ownerId);
    const said = `${ownId}.${ownerId}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
    const text = `${said}.${prove(secret, ['offer', said])}`;
    return { text, judge: (answer) => judge(secret, text, answer) };
  }

  /** Answers an offer of another replica, using whichever of our keys the offer was made with. */
  answer(offer: string): LinkAnswer {
    const [, entryId, ownerId, nonce, proof] = (offer.length <= MAX_LENGTH && OFFER.exec(offer)) || [];
    if (entryId === undefined || ownerId === undefined || proof === undefined) return { kind: 'invalid' };
    const said = `${entryId}.${ownerId}.${nonce}`;
    const secret = this.#secretsOf(entryId, ownerId).find((each) => isProof(proof, each, ['offer', said]));
    if (secret === undefined) return { kind: 'invalid' };
    const ownNonce = randomBytes(NONCE_BYTES).toString('base64url');
    const kind = this.#ownIds().includes(ownerId) ? 'accepted' : 'not-here';
    const text = `${ownNonce}.${prove(secret, [kind, offer, ownNonce])}`;
    return kind === 'accepted' ? { kind, text, key: keyOf(secret, offer, text) } : { kind, text };
  }

  #secretsOf(entryId: string, ownerId: string): readonly [Buffer, ...Buffer[]] {
    return this.#key.derive(`link from ${entryId} to ${ownerId}`);
  }
}

function judge(secret: Buffer, offer: string, answer: string): LinkVerdict {
  const [, nonce, proof] = (answer.length <= MAX_LENGTH && ANSWER.exec(answer)) || [];
  if (nonce === undefined || proof === undefined) return { kind: 'invalid' };
  if (isProof(proof, secret, ['not-here', offer, nonce])) return { kind: 'not-here' };
  if (!isProof(proof, secret, ['accepted', offer, nonce])) return { kind: 'invalid' };
  return { kind: 'accepted', key: keyOf(secret, offer, answer) };
}

function keyOf(secret: Buffer, offer: string, answer: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, `${offer} ${answer}`, 'TLS between two replicas', KEY_BYTES));
}

function prove(secret: Buffer, said: readonly string[]): string {
  return createHmac('sha256', secret).update(said.join(' ')).digest('base64url');
}

function isProof(proof: string, secret: Buffer, said: readonly string[]): boolean {
  return timingSafeEqual(Buffer.from(proof, 'latin1'), Buffer.from(prove(secret, said), 'latin1'));
}
