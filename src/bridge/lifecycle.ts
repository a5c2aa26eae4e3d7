import type { BridgeError } from '../errors.ts';

/**
 * A part of a running bridge. All parts end in the same steps: first the calls, then the sessions and streams, then the
 * processes and connections to servers.
 */
export interface Part {
  /** Takes nothing new. Resolves when open calls have ended or the grace time is over. */
  drain(graceMs: number): Promise<void>;
  /**
   * Ends what is still open, synchronously and with this reason. Resolves when processes and connections to servers have
   * ended.
   */
  close(reason: BridgeError): Promise<void>;
  /** Kills all child processes synchronously, as a last resort. */
  killNow(): void;
}

/** A part that consists of other parts, which end side by side. */
export abstract class Composite implements Part {
  /** Returns the parts that exist now. */
  protected abstract parts(): readonly Part[];

  async drain(graceMs: number): Promise<void> {
    await Promise.all(this.parts().map((part) => part.drain(graceMs)));
  }

  async close(reason: BridgeError): Promise<void> {
    await Promise.all(this.parts().map((part) => part.close(reason)));
  }

  killNow(): void {
    for (const part of this.parts()) part.killNow();
  }
}
