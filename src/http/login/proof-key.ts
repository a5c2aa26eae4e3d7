import {
  constants,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto';
import { promisify } from 'node:util';

const generate = promisify(generateKeyPair);

/** An algorithm for proofs: it creates keys and signs with them. [RFC 7518 3.1, RFC 8037 3.1] */
interface Algorithm {
  readonly create: () => Promise<{ readonly privateKey: KeyObject }>;
  /** Undefined if the algorithm includes its own digest. */
  readonly digest: 'sha256' | undefined;
  readonly options: { readonly dsaEncoding?: 'ieee-p1363'; readonly padding?: number; readonly saltLength?: number };
  /** The members of a public key that its thumbprint covers, in the order in which they are hashed. [RFC 7638 3.2] */
  readonly members: readonly (keyof JsonWebKey)[];
}

const ED25519: Algorithm = {
  create: () => generate('ed25519'),
  digest: undefined,
  options: {},
  members: ['crv', 'kty', 'x'],
};

/** The algorithms of FAPI 2.0. Every authorization server accepts one of them. The fastest comes first. */
const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  [
    'ES256',
    {
      create: () => generate('ec', { namedCurve: 'P-256' }),
      digest: 'sha256',
      options: { dsaEncoding: 'ieee-p1363' },
      members: ['crv', 'kty', 'x', 'y'],
    },
  ],
  ['EdDSA', ED25519],
  // [RFC 9864] The newer name of EdDSA with this curve.
  ['Ed25519', ED25519],
  [
    'PS256',
    {
      create: () => generate('rsa', { modulusLength: 2048 }),
      digest: 'sha256',
      options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
      members: ['e', 'kty', 'n'],
    },
  ],
]);

export const PROOF_ALGORITHMS: readonly string[] = [...ALGORITHMS.keys()];

/**
 * A key that tokens are bound to, so that a stolen token is useless without it. It is stored with the token as a JWK
 * and used nowhere else, because `JSON.stringify` returns the private key.
 */
export class ProofKey {
  /** The digest with which a token names its key. [RFC 9449 6.1] */
  readonly thumbprint: string;
  readonly #name: string;
  readonly #algorithm: Algorithm;
  readonly #key: KeyObject;
  /** The encoded header of each proof. */
  readonly #header: string;

  /** @param name one of PROOF_ALGORITHMS */
  static async create(name: string): Promise<ProofKey> {
    const algorithm = ALGORITHMS.get(name);
    if (algorithm === undefined) throw new Error(`no key can be made for ${name}`);
    return new ProofKey(name, algorithm, (await algorithm.create()).privateKey);
  }

  /** Returns undefined if the value is not a stored key. */
  static parse(stored: unknown): ProofKey | undefined {
    if (typeof stored !== 'object' || stored === null) return undefined;
    const { alg: name, ...jwk }: { readonly alg?: unknown } = stored;
    const algorithm = ALGORITHMS.get(String(name));
    if (algorithm === undefined) return undefined;
    try {
      return new ProofKey(String(name), algorithm, createPrivateKey({ key: jwk, format: 'jwk' }));
    } catch {
      return undefined;
    }
  }

  private constructor(name: string, algorithm: Algorithm, key: KeyObject) {
    const known = createPublicKey(key).export({ format: 'jwk' });
    const jwk = Object.fromEntries(algorithm.members.map((member) => [member, known[member]]));
    this.thumbprint = createHash('sha256').update(JSON.stringify(jwk)).digest('base64url');
    this.#name = name;
    this.#algorithm = algorithm;
    this.#key = key;
    this.#header = toPart({ typ: 'dpop+jwt', alg: name, jwk });
  }

  /** Returns a signed JWT with these claims. [RFC 9449 4.2] */
  sign(claims: Readonly<Record<string, unknown>>): string {
    const { digest, options } = this.#algorithm;
    const text = `${this.#header}.${toPart(claims)}`;
    return `${text}.${sign(digest, Buffer.from(text), { key: this.#key, ...options }).toString('base64url')}`;
  }

  toJSON(): object {
    return { ...this.#key.export({ format: 'jwk' }), alg: this.#name };
  }
}

function toPart(content: object): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}
