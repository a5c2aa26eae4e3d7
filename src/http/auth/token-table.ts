import { createHash, timingSafeEqual } from 'node:crypto';
import type { Logger } from 'pino';
import type { TokenSource } from '../../config/access.ts';
import { ChangingFile } from '../changing-file.ts';
import { isBearerToken } from '../client/credentials.ts';

interface Entry {
  readonly principal: string;
  /** Undefined: there is no usable token now, so nobody can use this entry. */
  readonly digest: () => Buffer | undefined;
}

/** Tokens the user handed out, and whom they belong to. */
export class TokenTable {
  readonly #entries: readonly Entry[];
  readonly #isEqual: typeof timingSafeEqual;

  /** `isEqual` must not tell by its time where two buffers differ. */
  constructor(sources: readonly TokenSource[], log: Logger, isEqual = timingSafeEqual) {
    this.#entries = sources.map((source) => ({ principal: source.principal, digest: createDigest(source, log) }));
    this.#isEqual = isEqual;
  }

  /** The caller's name, or undefined. */
  find(token: string): string | undefined {
    const shown = digestOf(token);
    let principal: string | undefined;
    // Digests have one length whatever the tokens have, and all are compared whichever matches: time tells nothing.
    for (const entry of this.#entries) {
      const digest = entry.digest();
      if (digest !== undefined && this.#isEqual(digest, shown)) principal ??= entry.principal;
    }
    return principal;
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function createDigest(source: TokenSource, log: Logger): () => Buffer | undefined {
  if (source.kind === 'value') {
    const digest = digestOf(source.token);
    return () => digest;
  }
  const file = new ChangingFile(source.file, (text) =>
    isBearerToken(text.trim()) ? digestOf(text.trim()) : undefined,
  );
  let isUsable = true;
  return () => {
    const digest = tryToRead(file);
    if (isUsable && digest === undefined) {
      log.warn({ file: source.file }, `nobody comes in by the token of ${source.principal}: its file has none`);
    }
    isUsable = digest !== undefined;
    return digest;
  };
}

/** The content of the file; undefined: the file cannot be read, and its token is no longer accepted. */
function tryToRead(file: ChangingFile<Buffer | undefined>): Buffer | undefined {
  try {
    return file.current();
  } catch {
    return undefined;
  }
}
