/** Proofs of possession as a server checks them, with another implementation of JWTs than that of the bridge. */
import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';

/** What a proof has to prove. [RFC 9449 4.3] */
export interface ExpectedProof {
  readonly method: string;
  readonly url: string;
  /** The access token that came with it; undefined: none may be named. */
  readonly token?: string;
}

export interface Proof {
  readonly thumbprint: string;
  readonly jti: string;
  readonly nonce: unknown;
  readonly iat: number;
}

/** Rejects with what is wrong. */
export async function readProof(text: unknown, { method, url, token }: ExpectedProof): Promise<Proof> {
  if (typeof text !== 'string') throw new Error('there is no proof');
  const { payload, protectedHeader } = await jwtVerify(text, EmbeddedJWK, { typ: 'dpop+jwt' });
  const { jti, htm, htu, iat, ath, nonce } = payload;
  const { jwk = {} } = protectedHeader;
  const hash = token === undefined ? undefined : createHash('sha256').update(token).digest('base64url');
  const wrong = Object.entries({
    jti: typeof jti !== 'string' || jti === '',
    htm: htm !== method,
    htu: htu !== url,
    iat: typeof iat !== 'number',
    ath: ath !== hash,
    jwk: 'd' in jwk,
  }).filter(([, isWrong]) => isWrong);
  if (wrong.length > 0) throw new Error(`wrong in the proof: ${wrong.map(([name]) => name).join(', ')}`);
  return { thumbprint: await calculateJwkThumbprint(jwk), jti: jti ?? '', nonce, iat: iat ?? 0 };
}

/** Reads the proofs that come to one server, and refuses one that comes a second time. */
export class ProofReader {
  readonly #seen = new Set<string>();
  /** The good ones, in order. */
  readonly proofs: (Proof & Pick<ExpectedProof, 'method'>)[] = [];

  async read(text: unknown, expected: ExpectedProof): Promise<Proof> {
    const proof = await readProof(text, expected);
    if (this.#seen.has(proof.jti)) throw new Error('the proof was used before');
    this.#seen.add(proof.jti);
    this.proofs.push({ ...proof, method: expected.method });
    return proof;
  }
}
