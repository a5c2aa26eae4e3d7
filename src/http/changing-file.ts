import { statSync } from 'node:fs';
import { readSmallFile } from '../io/bounded-file.ts';

/**
 * Some systems count the time of a file in hundredths of a second, some in seconds: a file that was changed so recently
 * may be changed again without a sign of it.
 */
const UNSETTLED_MS = 2000;

/** A small file that somebody else renews, read again when it has changed. */
export class ChangingFile<Content> {
  readonly path: string;
  readonly #parse: (text: string) => Content;
  /** What was in the file, and what it looked like then; undefined: it may have changed since without a sign. */
  #read: { readonly seen: string | undefined; readonly text: string; readonly content: Content } | undefined;

  constructor(path: string, parse: (text: string) => Content) {
    this.path = path;
    this.#parse = parse;
  }

  /** Looks at the file each time (microseconds). Throws what the system or the parser says. */
  current(): Content {
    const { mtimeMs, size, ino } = statSync(this.path);
    const signs = `${mtimeMs} ${size} ${ino}`;
    if (this.#read?.seen === signs) return this.#read.content;
    const seen = Date.now() - mtimeMs < UNSETTLED_MS ? undefined : signs;
    const known = this.#read;
    this.#read = undefined;
    const text = readSmallFile(this.path);
    const content = known?.text === text ? known.content : this.#parse(text);
    this.#read = { seen, text, content };
    return content;
  }
}
