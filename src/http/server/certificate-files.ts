import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';

/** Delay before unusable files are read again, independent of the number of new clients. */
const RETRY_MS = 1000;

export interface CertificateFilesOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * A server's certificate and key in two files that another program renews: in place, by renaming, or by redirecting a
 * link to another folder. During a renewal they may be truncated, missing or not match; the last valid pair is then
 * used.
 */
export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  readonly #cert: ChangingFile<string>;
  readonly #key: ChangingFile<string>;
  /** The last valid pair. */
  #pair: CertificatePair;
  /** The latest problem, so that each is logged only once. */
  #fault: string | undefined;
  #nextLookMs = Number.NEGATIVE_INFINITY;

  /** Throws ERR_CONFIG_OPTION if a file cannot be read. */
  constructor(options: CertificateFilesOptions) {
    this.#options = options;
    this.#cert = new ChangingFile(options.certFile, (text) => text);
    this.#key = new ChangingFile(options.keyFile, (text) => text);
    this.#pair = { cert: readNow(this.#cert, '--tls-cert'), key: readNow(this.#key, '--tls-key') };
  }

  /** The pair to use for new connections. */
  get pair(): CertificatePair {
    return this.#pair;
  }

  /**
   * Returns the new pair if it has changed, else undefined. Checks the files at each call, which takes microseconds.
   */
  renewed(): CertificatePair | undefined {
    const { clock } = this.#options;
    if (clock.now() < this.#nextLookMs) return undefined;
    try {
      const pair = { cert: this.#cert.current(), key: this.#key.current() };
      const isSame = pair.cert === this.#pair.cert && pair.key === this.#pair.key;
      if (!isSame) checkPair(pair);
      this.#fault = undefined;
      if (isSame) return undefined;
      this.#pair = pair;
      this.#tellRenewed(pair);
      return pair;
    } catch (thrown) {
      this.#nextLookMs = clock.now() + RETRY_MS;
      this.#tellFault(thrown);
      return undefined;
    }
  }

  #tellRenewed({ cert }: CertificatePair): void {
    const { log, certFile } = this.#options;
    log.info({ certFile, validTo: new X509Certificate(cert).validTo }, 'new connections get the renewed certificate');
  }

  #tellFault(thrown: unknown): void {
    const fault = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unreadable';
    if (fault === this.#fault) return;
    this.#fault = fault;
    const { log, certFile, keyFile } = this.#options;
    const message = `The files of --tls-cert and --tls-key have changed and cannot be used: expected a certificate and its own key, got ${fault}. The certificate that was read before is served on, and the files are read again`;
    log.warn({ certFile, keyFile, code: 'ERR_CONFIG_COMBINATION' }, message);
  }
}

function readNow(file: ChangingFile<string>, option: string): string {
  try {
    return file.current();
  } catch (cause) {
    throw new BridgeError('ERR_CONFIG_OPTION', `Cannot read the file given with ${option}: ${file.path}.`, { cause });
  }
}

/** A certificate chain and its private key in PEM format. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Throws an error with a `code` if the pair cannot be used. Creating a context is not enough: that accepts an empty
 * file, but no client could connect.
 */
export function checkPair(pair: CertificatePair): void {
  createSecureContext({ ...pair });
  if (new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) return;
  throw Object.assign(new Error('the key is of another certificate'), { code: 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' });
}
