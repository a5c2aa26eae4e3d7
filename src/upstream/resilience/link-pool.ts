import type { Deps } from '../../deps.ts';
import { type BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { logFailure } from '../../relay/log-failure.ts';
import type { Readiness, ServerListener, ServerProcess, SessionDialer, UpstreamLink } from '../../relay/ports.ts';
import { Frame } from '../../wire/frame.ts';
import { SpareLink, UNNEEDED } from './spare-link.ts';

/** A spare that could not be started is tried again after this long. */
const REFILL_RETRY_MS = 1000;
/** The session that took a spare has so long to open: to start a process stops everything else for some 10 ms. */
const REFILL_AFTER_MS = 100;
/** A handshake is learnt from, and sent ahead, if it is no longer; capabilities and a name are a few hundred bytes. */
const MAX_HANDSHAKE_BYTES = 16 * 1024;

/**
 * Keeps `size` connections started ahead of need, so that a new session does not wait for a process. Clients of one kind send
 * the same `initialize`, byte for byte. Where two did, one after the other, all spares but one get it ahead of need as well: a
 * client that sends it has its answer at once. One stays as it is, for clients of another kind.
 */
export class LinkPool implements SessionDialer {
  readonly #dialer: SessionDialer;
  readonly #size: number;
  readonly #deps: Deps;
  readonly #spares: SpareLink[] = [];
  #lastHandshake: Buffer | undefined;
  /** The one that was last sent by two clients, one after the other. */
  #usualHandshake: Frame | undefined;
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
    this.#scheduleRefill(REFILL_AFTER_MS);
    // With a single spare nothing could be sent ahead.
    if (this.#size === 1) return this.#dialUnasked(listener);
    const first = this.#take(isAsked) ?? this.#dialUnasked(listener);
    return new PooledLink({ listener, first, pool: this });
  }

  #take(isWanted: (spare: SpareLink) => boolean): SpareLink | undefined {
    const index = this.#spares.findIndex(isWanted);
    return index < 0 ? undefined : this.#spares.splice(index, 1)[0];
  }

  #dialUnasked(listener: ServerListener): UpstreamLink {
    const spare = this.#take((candidate) => !isAsked(candidate));
    if (spare === undefined) return this.#dialer.dial(listener);
    spare.handTo(listener);
    return spare.link;
  }

  /** The client needs a connection on which nothing was sent; the other one is for the next that does as was foreseen. */
  exchange(asked: SpareLink, listener: ServerListener): UpstreamLink {
    try {
      const link = this.#dialUnasked(listener);
      this.giveBack(asked);
      return link;
    } catch (thrown) {
      if (toBridgeError(thrown).code !== 'ERR_SESSION_LIMIT') {
        this.giveBack(asked);
        throw thrown;
      }
      // What nobody uses must keep no client out: it ends, and leaves its place under the limit.
      asked.link.close(UNNEEDED);
      return this.#dialUnasked(listener);
    }
  }

  /** No client has sent anything on it. */
  giveBack(spare: SpareLink): void {
    const usual = this.#usualHandshake;
    const isWanted = usual !== undefined && spare.wasAsked(usual) && this.#spares.length < this.#size;
    if (isWanted && !this.#isClosed) this.#spares.unshift(spare);
    else spare.link.close(UNNEEDED);
  }

  /** What a client has sent first. */
  note(frame: Frame): void {
    const { bytes, method, kind } = frame;
    if (kind !== 'request' || method !== INITIALIZE || bytes.length > MAX_HANDSHAKE_BYTES) return;
    if (this.#lastHandshake?.equals(bytes) !== true) {
      this.#lastHandshake = Buffer.from(bytes);
      return;
    }
    if (this.#usualHandshake?.bytes.equals(bytes) === true) return;
    this.#usualHandshake = new Frame(this.#lastHandshake, frame);
    for (const spare of this.#spares.filter(isAsked)) {
      this.#take((candidate) => candidate === spare);
      spare.link.close(UNNEEDED);
    }
    this.#scheduleRefill(REFILL_AFTER_MS);
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
    const [, ...others] = this.#spares.filter((spare) => !isAsked(spare));
    if (this.#usualHandshake !== undefined) for (const spare of others) spare.ask(this.#usualHandshake);
  }

  #lost(spare: SpareLink, reason: BridgeError): void {
    // A server that refuses it, or does not wait for the rest, might be started for it time and again.
    if (isAsked(spare)) this.#forgetHandshake();
    if (this.#take((candidate) => candidate === spare) === undefined) return;
    if (!this.#isClosed) logFailure(this.#deps.log, reason, 'a spare server is gone');
    this.#scheduleRefill(REFILL_RETRY_MS);
  }

  #forgetHandshake(): void {
    this.#lastHandshake = undefined;
    this.#usualHandshake = undefined;
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

function isAsked(spare: SpareLink): boolean {
  return spare.isAsked;
}

interface PooledLinkOptions {
  readonly listener: ServerListener;
  /** A spare on which a handshake was sent ahead, or a connection on which nothing was sent. */
  readonly first: SpareLink | UpstreamLink;
  readonly pool: LinkPool;
}

/** A connection of a pool. What its client sends first decides which one it is. */
class PooledLink implements UpstreamLink {
  readonly #listener: ServerListener;
  readonly #pool: LinkPool;
  /** With a handshake on it that the client may send or not; undefined: what is sent goes to the link. */
  #asked: SpareLink | undefined;
  /** Undefined until it is known. */
  #link: UpstreamLink | undefined;
  #isFirst = true;

  constructor({ listener, first, pool }: PooledLinkOptions) {
    this.#listener = listener;
    this.#pool = pool;
    if (first instanceof SpareLink) this.#asked = first;
    else this.#link = first;
  }

  get process(): ServerProcess | undefined {
    return this.#link?.process;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    if (!this.#isFirst) return this.#link?.send(frame, exchange) ?? true;
    this.#isFirst = false;
    this.#pool.note(frame);
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked === undefined) return this.#link?.send(frame, exchange) ?? true;
    if (asked.wasAsked(frame)) {
      this.#link = asked.link;
      asked.handTo(this.#listener);
      return true;
    }
    return this.#sendElsewhere(asked, frame, exchange);
  }

  #sendElsewhere(asked: SpareLink, frame: Frame, exchange: Exchange | undefined): boolean {
    try {
      this.#link = this.#pool.exchange(asked, this.#listener);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      queueMicrotask(() => this.#listener.serverClosed(error));
      return true;
    }
    return this.#link.send(frame, exchange);
  }

  pause(): void {
    this.#link?.pause();
  }

  resume(): void {
    this.#link?.resume();
  }

  close(reason: BridgeError): void {
    this.#isFirst = false;
    if (this.#asked !== undefined) this.#pool.giveBack(this.#asked);
    this.#asked = undefined;
    this.#link?.close(reason);
  }
}
