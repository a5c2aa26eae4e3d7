import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';
import type { Credentials } from './credentials.ts';

/** [RFC 6750 2.1] b64token; also keeps line breaks and whatever else is not a token out of the header. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Common servers take 8 to 16 KiB of headers, so a longer token reaches nobody; it would be sent with every request. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

/** Could this be sent as a bearer token? */
export function isBearerToken(text: string): boolean {
  return findTokenFault(text) === undefined;
}

/** Why this is no bearer token, as the end of a sentence that does not show it; undefined: it is one. */
export function findTokenFault(token: string): string | undefined {
  if (token === '') return 'is empty';
  if (token.length > MAX_TOKEN_LENGTH) {
    return `has ${token.length} characters, more than the ${MAX_TOKEN_LENGTH} that a bearer token may have`;
  }
  return TOKEN.test(token) ? undefined : 'holds something that is no bearer token';
}

/** A token in a file that somebody else renews. Errors name the file, never what is in it. */
export class BearerTokenFile implements Credentials {
  readonly renewal = undefined;
  readonly #file: ChangingFile<string>;

  constructor(path: string) {
    this.#file = new ChangingFile(path, (text) => text.trim());
  }

  /** Looks at the file each time (microseconds) and reads it when it has changed. Throws ERR_UPSTREAM_AUTH. */
  current(): string {
    const token = this.#read();
    const fault = findTokenFault(token);
    if (fault === undefined) return token;
    throw this.#error(`The bearer token file ${this.#file.path} ${fault}; expected one token and nothing else`);
  }

  authorization(): string {
    return `Bearer ${this.current()}`;
  }

  close(): void {}

  #read(): string {
    try {
      return this.#file.current();
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
      throw this.#error(`Cannot read the bearer token file ${this.#file.path} (${code})`, cause);
    }
  }

  #error(message: string, cause?: unknown): BridgeError {
    return new BridgeError('ERR_UPSTREAM_AUTH', `${message}.`, { cause });
  }
}
