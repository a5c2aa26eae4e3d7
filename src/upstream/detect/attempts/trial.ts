import type { BridgeError } from '../../../errors.ts';
import type { Exchange } from '../../../relay/exchange.ts';
import type { ServerFault, ServerListener, UpstreamDialer, UpstreamLink } from '../../../relay/ports.ts';
import type { Frame } from '../../../wire/frame.ts';
import type { FoundLink, Request } from '../found-link.ts';

/** What came of a trial: the server's answer, or what came instead of one. */
export type TrialEnd =
  | { readonly kind: 'answered'; readonly frame: Frame }
  | { readonly kind: 'failed'; readonly error: BridgeError };

/** A server that talks this much before it answers is asked to wait. */
const MAX_EARLY = 100;
/** Bytes a server may send before that; a message that exceeds the limit is still taken. */
const MAX_EARLY_BYTES = 1024 * 1024;

/** What the server said, to be said again to the client. */
type Said = (client: ServerListener) => void;

/**
 * A client's own `initialize`, tried over one transport. If that is the right one the link is the client's, with its
 * session: the server sees one `initialize`. If not, the link is closed and the client never hears of it.
 */
export class Trial implements ServerListener, FoundLink {
  readonly ended: Promise<TrialEnd>;
  readonly link: UpstreamLink;
  readonly #request: Request;
  #end: (end: TrialEnd) => void = () => {};
  /** Everything up to the answer, that included. */
  #said: Said[] = [];
  #saidBytes = 0;
  /** It talked too much and was told so. */
  #isPaused = false;
  #client: ServerListener | undefined;

  /** Throws what `dial` throws. */
  constructor(dialer: UpstreamDialer, request: Request) {
    this.#request = request;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.link = dialer.dial(this);
    this.link.send(request.frame, request.exchange);
  }

  /** The client gets the link, and hears now what the server has said so far. */
  open(client: ServerListener): UpstreamLink {
    this.#client = client;
    const said = this.#said;
    this.#said = [];
    if (this.#isPaused) this.link.resume();
    for (const say of said) say(client);
    return this.link;
  }

  drop(reason: BridgeError): void {
    this.link.close(reason);
  }

  // ---- from the server

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (this.#client !== undefined) return this.#client.fromServer(frame, exchange);
    this.#keep((client) => client.fromServer(frame, exchange), frame.bytes.length);
    if (frame.isResponse && frame.id === this.#request.frame.id) this.#end({ kind: 'answered', frame });
  }

  serverFault(fault: ServerFault): void {
    if (this.#client !== undefined) return this.#client.serverFault(fault);
    this.#keep((client) => client.serverFault(fault));
    if (fault.id === undefined || fault.id === this.#request.frame.id) {
      this.#end({ kind: 'failed', error: fault.error });
    }
  }

  serverDrained(): void {
    this.#client?.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#client !== undefined) return this.#client.serverClosed(reason);
    this.#keep((client) => client.serverClosed(reason));
    this.#end({ kind: 'failed', error: reason });
  }

  #keep(say: Said, bytes = 0): void {
    this.#said.push(say);
    this.#saidBytes += bytes;
    if (this.#said.length <= MAX_EARLY && this.#saidBytes < MAX_EARLY_BYTES) return;
    this.#isPaused = true;
    this.link.pause();
  }
}
