import type { Outgoing } from './link-messages.ts';

export interface LingeringLimits {
  readonly count: number;
  /** Limits the bytes of the messages that the responses were opened with, which are kept with them. */
  readonly bytes: number;
  /** This many are kept, however large they are: the server may be about to end them. */
  readonly least: number;
}

interface Post {
  readonly message: Outgoing;
}

/** Responses with all that was wanted of them, which their server does not end: later ones end the first. */
export class Lingering<Kept extends Post> {
  readonly #limits: LingeringLimits;
  readonly #end: (oldest: Kept) => void;
  /** The latest is at the end. */
  #posts: Kept[] = [];
  #bytes = 0;

  /** `end` is called with each that has to go. */
  constructor(limits: LingeringLimits, end: (oldest: Kept) => void) {
    this.#limits = limits;
    this.#end = end;
  }

  add(post: Kept): void {
    this.#posts.push(post);
    this.#bytes += bytesOf(post);
    while (this.#areTooMany) {
      const [oldest] = this.#posts;
      if (oldest === undefined) return;
      this.delete(oldest);
      this.#end(oldest);
    }
  }

  get #areTooMany(): boolean {
    const { length } = this.#posts;
    const { count, bytes, least } = this.#limits;
    return length > count || (length > least && this.#bytes > bytes);
  }

  delete(post: Kept): void {
    const index = this.#posts.indexOf(post);
    if (index < 0) return;
    this.#posts.splice(index, 1);
    this.#bytes -= bytesOf(post);
  }

  clear(): void {
    this.#posts = [];
    this.#bytes = 0;
  }
}

function bytesOf({ message }: Post): number {
  return message.frame.bytes.length;
}
