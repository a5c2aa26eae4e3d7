import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ClusterKey } from '../store/cluster-key.ts';

/** What the replica that opens a link says first, and how it takes what it is answered. */
export interface LinkOffer {
  readonly text: string;
  judge(answer: string): LinkVerdict;
}

/**
 * - `accepted`: the other end has the cluster key, and is the run of the replica that was meant. `key` is that of this link
 *   alone, of 32 bytes; both ends have it, and nobody else can.
 * - `not-here`: it has the key, and is not that run.
 * - `invalid`: nobody who has the key has said this to this offer.
 */
export type LinkVerdict =
  | { readonly kind: 'accepted'; readonly key: Buffer }
  | { readonly kind: 'not-here' }
  | { readonly kind: 'invalid' };

/** What is answered to an offer; `invalid`: it is of nobody who has the cluster key. */
export type LinkAnswer =
  | { readonly kind: 'accepted'; readonly text: string; readonly key: Buffer }
  | { readonly kind: 'not-here'; readonly text: string }
  | { readonly kind: 'invalid' };

const NONCE_BYTES = 32;
const KEY_BYTES = 32;
/** Longer than any offer or answer, and short enough that nobody minds to look at it. */
const MAX_LENGTH = 512;
/** Ids are those of two runs; none of their characters separates. */
const OFFER = /^([\w-]{1,64})\.([\w-]{1,64})\.([\w-]{43})\.([\w-]{43})$/;
const ANSWER = /^([\w-]{43})\.([\w-]{43})$/;

/**
 * How two replicas show each other that they have the cluster key, and get a key that nobody else can have. Both choose a
 * random number, and the key is made of the cluster key and all that was said, the names of both runs included: what was
 * recorded of one link is worth nothing for another.
 */
export class LinkSecrets {
  readonly #key: ClusterKey;
  readonly #ownIds: () => readonly [string, ...string[]];

  /** @param ownIds what this replica is called, and has been called */
  constructor(key: ClusterKey, ownIds: () => readonly [string, ...string[]]) {
    this.#key = key;
    this.#ownIds = ownIds;
  }

  /** Offers a link to the run of a replica that is called this. */
  offer(ownerId: string): LinkOffer {
    const [ownId] = this.#ownIds();
    const [secret] = this.#secretsOf(ownId, ownerId);
    const said = `${ownId}.${ownerId}.${randomBytes(NONCE_BYTES).toString('base64url')}`;
    const text = `${said}.${prove(secret, ['offer', said])}`;
    return { text, judge: (answer) => judge(secret, text, answer) };
  }

  /** Answers what another replica has offered, under the key of ours that it has used. */
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
