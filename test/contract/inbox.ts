/** Messages as they come, until somebody asks for them. */
export class Inbox {
  readonly #unread: string[] = [];
  #waiting: ((message: string) => void)[] = [];

  put(message: string): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#unread.push(message);
    else waiting(message);
  }

  next(): Promise<string> {
    const unread = this.#unread.shift();
    if (unread !== undefined) return Promise.resolve(unread);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
