import { readFileSync, statSync } from 'node:fs';

/** A small file that somebody else renews, read again when it has changed. */
export class ChangingFile<Content> {
  readonly path: string;
  readonly #parse: (text: string) => Content;
  /** What the file looked like when it was read, and what was in it. */
  #read: { readonly seen: string; readonly content: Content } | undefined;

  constructor(path: string, parse: (text: string) => Content) {
    this.path = path;
    this.#parse = parse;
  }

  /** Looks at the file each time (microseconds). Throws what the system or the parser says. */
  current(): Content {
    const { mtimeMs, size, ino } = statSync(this.path);
    const seen = `${mtimeMs} ${size} ${ino}`;
    if (this.#read?.seen !== seen) {
      this.#read = undefined;
      this.#read = { seen, content: this.#parse(readFileSync(this.path, 'utf8')) };
    }
    return this.#read.content;
  }
}
