import { readFileSync, statSync } from 'node:fs';
import { BridgeError } from '../errors.ts';

/** [RFC 6750 2.1] b64token; also keeps line breaks and whatever else is not a token out of the header. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** A token in a file that somebody else renews. Errors name the file, never what is in it. */
export class BearerTokenFile {
  readonly #path: string;
  #token = '';
  /** What the file looked like when it was read. */
  #seen = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** Looks at the file each time (microseconds) and reads it when it has changed. Throws ERR_UPSTREAM_AUTH. */
  current(): string {
    try {
      const { mtimeMs, size, ino } = statSync(this.#path);
      const seen = `${mtimeMs} ${size} ${ino}`;
      if (seen !== this.#seen) {
        this.#token = readFileSync(this.#path, 'utf8').trim();
        this.#seen = seen;
      }
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
      throw this.#error(`Cannot read the bearer token file ${this.#path} (${code})`, cause);
    }
    if (TOKEN.test(this.#token)) return this.#token;
    const fault = this.#token === '' ? 'is empty' : 'holds something that is no bearer token';
    throw this.#error(`The bearer token file ${this.#path} ${fault}; expected one token and nothing else`);
  }

  #error(message: string, cause?: unknown): BridgeError {
    return new BridgeError('ERR_UPSTREAM_AUTH', `${message}.`, { cause });
  }
}
