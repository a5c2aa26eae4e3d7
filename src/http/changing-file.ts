import { statSync } from 'node:fs';
import { readSmallFile } from '../io/bounded-file.ts';

/**
 * Some file systems have timestamps of hundredths of a second, others of whole seconds. A file changed this recently
 * may change again without a new timestamp.
 */
const UNSETTLED_MS = 2000;

/** A small file that another program renews; it is read again after a change. */
export class ChangingFile<Content> {
  readonly path: string;
  readonly #parse: (text: string) => Content;
  /**
   * The content at the last read, with the file's attributes then; `seen` is undefined if the file may have changed
   * since without new attributes.
   */
  #read: { readonly seen: string | undefined; readonly text: string; readonly content: Content } | undefined;

  constructor(path: string, parse: (text: string) => Content) {
    this.path = path;
    this.#parse = parse;
  }

  /**
   * Returns the current content. Checks the file at each call, which takes microseconds. Throws the error of the system
   * or the parser.
   */
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
