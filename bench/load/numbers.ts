/** Numbers of calls. Clients with a source of their own use the same ids as others do, as real clients would. */
export class Numbers {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}
