import type { Frame } from '../wire/frame.ts';
import type { Lane } from './call.ts';
import type { MessageTap } from './message-tap.ts';
import type { CallListener, CallPeer } from './modern-call.ts';

/** The client's side of a modern call whose messages are recorded. */
export class TappedPeer implements CallPeer {
  readonly #peer: CallPeer;
  readonly #tap: MessageTap;

  constructor(peer: CallPeer, tap: MessageTap) {
    this.#peer = peer;
    this.#tap = tap;
  }

  get isOpen(): boolean {
    return this.#peer.isOpen;
  }

  get lostAtMs(): Lane['lostAtMs'] {
    return this.#peer.lostAtMs;
  }

  get headers(): Lane['headers'] {
    return this.#peer.headers;
  }

  get traceHeaders(): Lane['traceHeaders'] {
    return this.#peer.traceHeaders;
  }

  get listener(): CallListener {
    return this.#peer.listener;
  }

  set listener(listener: CallListener) {
    this.#peer.listener = listener;
  }

  send(frame: Frame): boolean {
    this.#tap.sent(frame, undefined);
    return this.#peer.send(frame);
  }

  pause(): void {
    this.#peer.pause();
  }

  resume(): void {
    this.#peer.resume();
  }
}
