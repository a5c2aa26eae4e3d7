import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { logFailure } from '../../relay/log-failure.ts';
import type { Readiness, ServerFault, ServerListener, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

/** Messages a spare server may send before it has a client; then it is made to wait. */
const MAX_EARLY_FRAMES = 100;
/** Bytes a spare may send before a client has it; a message that exceeds the limit is still taken. */
const MAX_EARLY_BYTES = 1024 * 1024;
/** A spare that could not be started is tried again after this long. */
const REFILL_RETRY_MS = 1000;
/** The session that took a spare has so long to open: to start a process stops everything else for some 10 ms. */
const REFILL_AFTER_MS = 100;

/** Keeps `size` connections started ahead of need, so that a new session does not wait for a process. */
export class LinkPool implements SessionDialer {
  readonly #dialer: SessionDialer;
  readonly #size: number;
  readonly #deps: Deps;
  readonly #spares: SpareLink[] = [];
  #cancelRefill: (() => void) | undefined;
  #isClosed = false;

  constructor(dialer: SessionDialer, size: number, deps: Deps) {
    this.#dialer = dialer;
    this.#size = size;
    this.#deps = deps;
    this.#scheduleRefill(0);
  }

  get name(): string {
    return this.#dialer.name;
  }

  readiness(): Readiness {
    return this.#dialer.readiness();
  }

  dial(listener: ServerListener): UpstreamLink {
    const spare = this.#spares.shift();
    this.#scheduleRefill(REFILL_AFTER_MS);
    if (spare === undefined) return this.#dialer.dial(listener);
    spare.handTo(listener);
    return spare.link;
  }

  #scheduleRefill(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancelRefill ??= this.#deps.clock.after(delayMs, () => {
      this.#cancelRefill = undefined;
      this.#refill();
    });
  }

  #refill(): void {
    while (this.#spares.length < this.#size) {
      const spare: SpareLink = new SpareLink((reason) => this.#lost(spare, reason));
      try {
        spare.link = this.#dialer.dial(spare);
      } catch (thrown) {
        const error = toBridgeError(thrown);
        logFailure(this.#deps.log, error, 'a spare server could not be started');
        return this.#scheduleRefill(error.retryAfterMs ?? REFILL_RETRY_MS);
      }
      this.#spares.push(spare);
    }
  }

  #lost(spare: SpareLink, reason: BridgeError): void {
    const index = this.#spares.indexOf(spare);
    if (index < 0) return;
    this.#spares.splice(index, 1);
    if (!this.#isClosed) logFailure(this.#deps.log, reason, 'a spare server is gone');
    this.#scheduleRefill(REFILL_RETRY_MS);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRefill?.();
    for (const spare of this.#spares.splice(0)) {
      spare.link.close(SHUTTING_DOWN);
    }
    return this.#dialer.close();
  }

  killNow(): void {
    this.#dialer.killNow();
  }
}

/** A connection without a client: what it says is kept until it gets one. */
class SpareLink implements ServerListener {
  /** It ended before it had a client. */
  readonly #lost: (reason: BridgeError) => void;
  readonly #early = new ByteQueue<Frame>(
    { maxItems: MAX_EARLY_FRAMES, maxBytes: MAX_EARLY_BYTES },
    ({ bytes }) => bytes.length,
  );
  /** It talked too much and was told so. */
  #isPaused = false;
  #client: ServerListener | undefined;
  #link: UpstreamLink | undefined;

  constructor(lost: (reason: BridgeError) => void) {
    this.#lost = lost;
  }

  set link(link: UpstreamLink) {
    this.#link = link;
  }

  get link(): UpstreamLink {
    if (this.#link === undefined) throw new Error('the link is not dialled yet');
    return this.#link;
  }

  /** What came early is delivered after the caller has joined both ends. */
  handTo(client: ServerListener): void {
    const early = this.#early.takeAll();
    queueMicrotask(() => {
      for (const frame of early) client.fromServer(frame);
      if (this.#isPaused) this.link.resume();
    });
    this.#client = client;
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (this.#client !== undefined) return this.#client.fromServer(frame, exchange);
    this.#early.add(frame);
    if (!this.#early.isFull) return;
    this.#isPaused = true;
    this.#link?.pause();
  }

  serverFault(fault: ServerFault): void {
    this.#client?.serverFault(fault);
  }

  serverDrained(): void {
    this.#client?.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#client !== undefined) return this.#client.serverClosed(reason);
    this.#lost(reason);
  }
}
