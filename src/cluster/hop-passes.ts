import { createCipheriv, createDecipheriv } from 'node:crypto';
import { RecentNames } from '../collections/recent-names.ts';
import type { ClusterKey } from '../store/cluster-key.ts';

/** The request that a pass is for. */
export interface PassedRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_PASS_LENGTH = 8192;
const PEER_LIMITS = { count: 2000, length: 200_000 };
const FORM = /^([A-Za-z0-9_-]{1,64})\.(\d{1,15})\.([A-Za-z0-9_-]+)$/;

interface Receiver {
  readonly key: Buffer;
  /** Also the nonce, which is used once: the key is that of one run of each of the two. */
  next: number;
}

interface Sender {
  readonly keys: readonly Buffer[];
  readonly window: ReplayWindow;
}

/**
 * What a replica shows another with a request that it passes on: that it has the cluster key, and who the caller is. It is
 * good for this request, at this run of that replica, once. No clock is asked: passes are counted.
 */
export class HopPasses {
  readonly #key: ClusterKey;
  readonly #ownIds: () => readonly [string, ...string[]];
  readonly #receivers = new RecentNames<Receiver>(PEER_LIMITS);
  readonly #senders = new RecentNames<Sender>(PEER_LIMITS);

  /** @param ownIds what this replica is called, and has been called */
  constructor(key: ClusterKey, ownIds: () => readonly [string, ...string[]]) {
    this.#key = key;
    this.#ownIds = ownIds;
  }

  issue(receiverId: string, request: PassedRequest, principal: string): string {
    const [ownId] = this.#ownIds();
    const pair = pairOf(ownId, receiverId);
    let receiver = this.#receivers.get(pair);
    if (receiver === undefined) {
      receiver = { key: this.#key.derive(pair)[0], next: 0 };
      this.#receivers.set(pair, receiver);
    }
    const number = receiver.next;
    receiver.next += 1;
    const cipher = createCipheriv('aes-256-gcm', receiver.key, nonceOf(number)).setAAD(contextOf(request));
    const sealed = Buffer.concat([cipher.update(principal), cipher.final(), cipher.getAuthTag()]);
    return `${ownId}.${number}.${sealed.toString('base64url')}`;
  }

  /** The caller's name; undefined: it is no pass for this request and for us, or it has been used. */
  redeem(pass: string, request: PassedRequest): string | undefined {
    const [, senderId, number, sealed] = pass.length <= MAX_PASS_LENGTH ? (FORM.exec(pass) ?? []) : [];
    if (senderId === undefined || sealed === undefined) return undefined;
    const parts = { sealed: Buffer.from(sealed, 'base64url'), number: Number(number), request };
    for (const ownId of this.#ownIds()) {
      const pair = pairOf(senderId, ownId);
      const known = this.#senders.get(pair);
      const sender = known ?? { keys: this.#key.derive(pair), window: new ReplayWindow() };
      const principal = openWithAny(sender.keys, parts);
      if (principal === undefined) continue;
      // Only who has the key is remembered.
      if (known === undefined) this.#senders.set(pair, sender);
      return sender.window.take(parts.number) ? principal : undefined;
    }
    return undefined;
  }
}

interface SealedPass {
  readonly sealed: Buffer;
  readonly number: number;
  readonly request: PassedRequest;
}

function openWithAny(keys: readonly Buffer[], { sealed, number, request }: SealedPass): string | undefined {
  if (sealed.length < TAG_BYTES) return undefined;
  for (const key of keys) {
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number))
      .setAAD(contextOf(request))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]).toString();
    } catch {
      // The next one, then.
    }
  }
  return undefined;
}

function pairOf(senderId: string, receiverId: string): string {
  return `pass from ${senderId} to ${receiverId}`;
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeBigUInt64BE(BigInt(number), NONCE_BYTES - 8);
  return nonce;
}

function contextOf({ method, target }: PassedRequest): Buffer {
  return Buffer.from(`${method} ${target}`);
}

/** How far messages may overtake each other on several connections. */
const WINDOW = 8192;
const BITS = 32;

/** Takes each number once, in about the order in which they count up; one that comes too late counts as taken. */
export class ReplayWindow {
  readonly #taken = new Uint32Array(WINDOW / BITS);
  #highest = -1;

  /** False: it has been taken before, or may have been. */
  take(number: number): boolean {
    if (number <= this.#highest - WINDOW) return false;
    if (number > this.#highest) {
      const from = Math.max(this.#highest + 1, number - WINDOW + 1);
      for (let passed = from; passed <= number; passed += 1) this.#clear(passed);
      this.#highest = number;
    }
    const slot = number % WINDOW;
    const index = Math.floor(slot / BITS);
    const bit = (1 << (slot % BITS)) >>> 0;
    const word = this.#taken[index] ?? 0;
    if ((word & bit) !== 0) return false;
    this.#taken[index] = word | bit;
    return true;
  }

  #clear(number: number): void {
    const slot = number % WINDOW;
    const index = Math.floor(slot / BITS);
    this.#taken[index] = (this.#taken[index] ?? 0) & ~((1 << (slot % BITS)) >>> 0);
  }
}
