import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OVERHEAD = ID_BYTES + NONCE_BYTES + TAG_BYTES;

/**
 * The keys derived from one secret. `id` marks the values sealed with this key and reveals nothing about it. Keys for
 * other purposes are derived from `root`.
 */
interface DerivedKey {
  readonly id: Buffer;
  readonly encryption: Buffer;
  readonly root: Buffer;
}

/**
 * The secret that the replicas share. The first of its keys seals and all of them open, so that a key can be replaced
 * while replicas run.
 *
 * AES-256-GCM with random nonces allows 2^32 seals per key. A thousand seals a second take seven weeks to reach that,
 * and the bridge seals a session when it changes, not when it is used.
 */
export class ClusterKey {
  readonly #keys: readonly [DerivedKey, ...DerivedKey[]];

  constructor([first, ...others]: readonly [string, ...string[]]) {
    this.#keys = [derive(first), ...others.map(derive)];
  }

  /** @param context must be repeated to open the value, so that it cannot be used in another context */
  seal(plain: Buffer, context: string): Buffer {
    const [{ id, encryption }] = this.#keys;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', encryption, nonce).setAAD(Buffer.from(context));
    return Buffer.concat([id, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  /** Returns undefined if the value was not sealed with any of the keys in this context, or has been changed. */
  open(sealed: Buffer, context: string): Buffer | undefined {
    if (sealed.length < OVERHEAD) return undefined;
    const id = sealed.subarray(0, ID_BYTES);
    const key = this.#keys.find((candidate) => candidate.id.equals(id));
    if (key === undefined) return undefined;
    const nonce = sealed.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key.encryption, nonce)
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  /** Derives keys for one purpose. The first one is for sealing. */
  derive(purpose: string): readonly [Buffer, ...Buffer[]] {
    const [first, ...others] = this.#keys.map(({ root }) => expand(root, purpose, KEY_BYTES));
    return [first as Buffer, ...others]; // There is a key.
  }
}

function derive(key: string): DerivedKey {
  return {
    id: expand(key, 'key id', ID_BYTES),
    encryption: expand(key, 'encryption', KEY_BYTES),
    root: expand(key, 'root', KEY_BYTES),
  };
}

function expand(key: string | Buffer, purpose: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `mcp-portage ${purpose}`, length));
}
