import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** A chain and its private key, as PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Throws what is wrong with it, with a code. A context is made without complaint of an empty file, and serves nobody. */
export function checkPair(pair: CertificatePair): void {
  createSecureContext({ ...pair });
  if (new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) return;
  throw Object.assign(new Error('the key is of another certificate'), { code: 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' });
}
