import type { BridgeError } from '../../src/errors.ts';
import type { LinkOwner, ServerFault } from '../../src/relay/ports.ts';
import type { Frame, JsonRpcId } from '../../src/wire/frame.ts';
import { waitFor } from '../support/wait-for.ts';

/** Keeps what an upstream link tells the relay. */
export class RecordingServerListener implements LinkOwner {
  readonly frames: Frame[] = [];
  readonly faults: ServerFault[] = [];
  drains = 0;
  closings: BridgeError[] = [];
  /** Called for each frame. */
  onFrame: (frame: Frame) => void = () => undefined;

  serverFound(): void {}

  fromServer(frame: Frame): void {
    if (this.closings.length > 0) throw new Error('a message after the end');
    this.frames.push(frame);
    this.onFrame(frame);
  }

  serverFault(fault: ServerFault): void {
    this.faults.push(fault);
  }

  serverDrained(): void {
    this.drains += 1;
  }

  serverClosed(reason: BridgeError): void {
    this.closings.push(reason);
  }

  /** The answer to a request, as parsed JSON. */
  async answerTo(id: JsonRpcId): Promise<Record<string, unknown>> {
    const find = () => this.frames.find((frame) => frame.isResponse && frame.id === id);
    const frame = await waitFor(find, {
      message: () => `the answer to ${id}; the server ${this.closings[0]?.message ?? 'is still there'}`,
    });
    return frame.json() as Record<string, unknown>;
  }

  whenClosed(): Promise<BridgeError> {
    return waitFor(() => this.closings[0], { message: 'the end of the server' });
  }
}
