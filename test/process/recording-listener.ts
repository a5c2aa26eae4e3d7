import type { BridgeError } from '../../src/errors.ts';
import type { ChildExit, ChildListener } from '../../src/process/child.ts';
import { waitFor } from '../support/wait-for.ts';

/** Keeps what a child tells its owner. */
export class RecordingListener implements ChildListener {
  readonly chunks: Buffer[] = [];
  readonly closedStreams: string[] = [];
  exit: ChildExit | undefined;
  error: BridgeError | undefined;
  /** Calls of `ended` and `failed`. */
  ends = 0;

  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8');
  }

  get byteLength(): number {
    return this.chunks.reduce((sum, { length }) => sum + length, 0);
  }

  output(chunk: Buffer): void {
    if (this.ends > 0) throw new Error('output after the end');
    this.chunks.push(chunk);
  }

  closed(stream: 'stdin' | 'stdout'): void {
    this.closedStreams.push(stream);
  }

  ended(exit: ChildExit): void {
    this.ends += 1;
    this.exit = exit;
  }

  failed(error: BridgeError): void {
    this.ends += 1;
    this.error = error;
  }

  whenEnded(): Promise<ChildExit> {
    return waitFor(() => this.exit, { message: 'the end of the child' });
  }
}
