import { readSync } from 'node:fs';
import { Readable } from 'node:stream';
import type { ReadStream } from 'node:tty';

const READ_BYTES = 64 * 1024;
/** The kernel holds no more than this for the leader; whoever else still writes does not keep us longer. */
const MAX_LAST_BYTES = 1024 * 1024;

/**
 * What a child writes to its pseudo-terminal, with an end. A terminal has none of its own: when its last slave is
 * closed, the event loop takes the hang-up for the end even if the kernel still holds bytes. So the slave is kept open,
 * and the end is set here once the child has exited and everything buffered has been read.
 */
export class PtyOutput extends Readable {
  readonly #master: ReadStream;
  readonly #masterFd: number;
  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#master.pause();
  };

  constructor(master: ReadStream, masterFd: number) {
    super();
    this.#master = master;
    this.#masterFd = masterFd;
    master.on('data', this.#onData);
  }

  override _read(): void {
    this.#master.resume();
  }

  /** The child has exited. The master must still be open and can be closed afterwards. */
  finish(): void {
    this.#master.off('data', this.#onData);
    this.#master.pause();
    for (let chunk = this.#master.read(); chunk !== null; chunk = this.#master.read()) this.push(chunk);
    let left = MAX_LAST_BYTES;
    while (left > 0) {
      const chunk = this.#readKernel();
      if (chunk === undefined) break;
      left -= chunk.length;
      this.push(chunk);
    }
    this.push(null);
  }

  #readKernel(): Buffer | undefined {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    try {
      const byteLength = readSync(this.#masterFd, buffer);
      return byteLength === 0 ? undefined : buffer.subarray(0, byteLength);
    } catch {
      // EAGAIN: nothing left. EIO: no slave is open any more, and nothing left either.
      return undefined;
    }
  }
}
