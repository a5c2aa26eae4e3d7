import { createHash, timingSafeEqual } from 'node:crypto';
import type { Logger } from 'pino';
import type { TokenSource } from '../../config/access.ts';
import { ChangingFile } from '../changing-file.ts';
import { isBearerToken } from '../client/credentials.ts';

interface Entry {
  readonly principal: string;
  /** Returns undefined if there is no usable token now, so that no caller can use this entry. */
  readonly digest: () => Buffer | undefined;
}

/** The tokens that the user has handed out, and the callers that they belong to. */
export class TokenTable {
  readonly #entries: readonly Entry[];
  readonly #isEqual: typeof timingSafeEqual;

  /** @param isEqual compares two buffers in a time that does not depend on where they differ */
  constructor(sources: readonly TokenSource[], log: Logger, isEqual = timingSafeEqual) {
    this.#entries = sources.map((source) => ({ principal: source.principal, digest: createDigest(source, log) }));
    this.#isEqual = isEqual;
  }

  /** Returns the name of the caller; undefined for an unknown token. */
  find(token: string): string | undefined {
    const shown = digestOf(token);
    let principal: string | undefined;
    // All digests have the same length, and all are compared whichever matches, so the time reveals nothing.
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
      log.warn(
        { file: source.file },
        `the file with the token of ${source.principal} has no token, so it lets nobody in`,
      );
    }
    isUsable = digest !== undefined;
    return digest;
  };
}

/** Returns the content of the file; undefined if the file cannot be read, so that its token is no longer accepted. */
function tryToRead(file: ChangingFile<Buffer | undefined>): Buffer | undefined {
  try {
    return file.current();
  } catch {
    return undefined;
  }
}
