/** Takes a stream of server-sent events apart. What is left of an event waits as pieces, joined once. */
export class EventReader {
  readonly #onEvent: (type: string, data: Buffer) => void;
  #pieces: Buffer[] = [];

  constructor(onEvent: (type: string, data: Buffer) => void) {
    this.#onEvent = onEvent;
  }

  push(chunk: Buffer): void {
    let start = 0;
    // An event ends at an empty line, so at a newline that stands at the start of a line.
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, end + 1)) {
      if (!this.#isLineEmpty(chunk, start, end)) continue;
      this.#pieces.push(chunk.subarray(start, end));
      const block = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
      this.#pieces = [];
      start = end + 1;
      if (block !== undefined && block.length > 0) this.#read(block);
    }
    if (start < chunk.length) this.#pieces.push(chunk.subarray(start));
  }

  /** Whether the newline at `end` ends an empty line of the event that starts at `start` or in an earlier chunk. */
  #isLineEmpty(chunk: Buffer, start: number, end: number): boolean {
    let before = this.#byteBefore(chunk, start, end);
    if (before === 13) before = this.#byteBefore(chunk, start, end - 1);
    return before === 10 || before === undefined;
  }

  #byteBefore(chunk: Buffer, start: number, at: number): number | undefined {
    if (at > start) return chunk[at - 1];
    const piece = this.#pieces.at(-1);
    return piece?.[piece.length - 1 - (start - at)];
  }

  #read(block: Buffer): void {
    let type = 'message';
    const data: Buffer[] = [];
    for (let start = 0; start < block.length; ) {
      let end = block.indexOf(10, start);
      if (end === -1) end = block.length;
      const line = block.subarray(start, block[end - 1] === 13 ? end - 1 : end);
      start = end + 1;
      if (line.toString('latin1', 0, 5) === 'data:') data.push(line.subarray(line[5] === 32 ? 6 : 5));
      else if (line.toString('latin1', 0, 6) === 'event:') type = line.toString('latin1', 6).trim();
    }
    const [first] = data;
    if (first === undefined || first.length === 0) return;
    this.#onEvent(type, data.length === 1 ? first : Buffer.concat(data.flatMap((line) => [line, Buffer.from('\n')])));
  }
}
