/** What comes on an event stream, as far as somebody waits for it. */
export class EventText {
  text = '';
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder = new TextDecoder();

  constructor({ status, body }: Response) {
    if (status !== 200 || body === null) throw new Error(`there was to be a stream, not a response with ${status}`);
    this.#chunks = body[Symbol.asyncIterator]();
  }

  async until(expected: RegExp): Promise<string> {
    while (!expected.test(this.text)) {
      const { value, done } = await this.#chunks.next();
      if (done === true) throw new Error(`the stream ended with ${this.text}`);
      this.text += this.#decoder.decode(value, { stream: true });
    }
    return this.text;
  }

  /** Of the last event that was heard. */
  get lastEventId(): string {
    return [...this.text.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? '';
  }
}
