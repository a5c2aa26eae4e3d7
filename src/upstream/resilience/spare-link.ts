import { ByteQueue } from '../../collections/bounded-collections.ts';
import { BridgeError } from '../../errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerFault, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';

/** Messages a spare server may send before it has a client; then it is made to wait. */
const MAX_EARLY_FRAMES = 100;
/** Bytes a spare may send before a client has it; a message that exceeds the limit is still taken. */
const MAX_EARLY_BYTES = 1024 * 1024;
export const UNNEEDED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'This server was started for a client that did not come.',
);
const REFUSED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'The server did not accept a handshake ahead of its client; none is sent ahead until clients have succeeded.',
);

/** A connection without a client: what it says is kept until it gets one. */
export class SpareLink implements ServerListener {
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
  #asked: Frame | undefined;
  #isLost = false;

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

  /** Whether a handshake was sent ahead. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  /** Whether it was this one, and its answer is here or to be expected. */
  wasAsked({ bytes }: Frame): boolean {
    return !this.#isLost && this.#asked?.bytes.equals(bytes) === true;
  }

  /** Sends a client's request before the client has: its answer is kept like all that comes early. */
  ask(handshake: Frame): void {
    this.#asked = handshake;
    this.link.send(handshake);
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
    // Another time the server may accept it, and a client should hear what it says then.
    if (this.isAsked && frame.kind === 'error') return this.#giveUp();
    this.#early.add(frame);
    if (!this.#early.isFull) return;
    this.#isPaused = true;
    this.#link?.pause();
  }

  #giveUp(): void {
    this.#link?.close(REFUSED);
    this.serverClosed(REFUSED);
  }

  serverFault(fault: ServerFault): void {
    if (this.#client !== undefined) this.#client.serverFault(fault);
    else if (this.isAsked) this.#giveUp();
  }

  serverDrained(): void {
    this.#client?.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#client !== undefined) return this.#client.serverClosed(reason);
    this.#isLost = true;
    this.#lost(reason);
  }
}
