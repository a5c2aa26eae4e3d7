import type { BridgeError } from '../errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';
import type { ServerFault, ServerListener, ServerProcess, UpstreamLink } from './ports.ts';

/** A link made of a link: what a subclass does not change passes as it is, in both directions. */
export abstract class PassingLink implements UpstreamLink, ServerListener {
  protected readonly listener: ServerListener;
  /** The link below; it was dialled with this one as its listener. */
  protected abstract link: UpstreamLink;

  constructor(listener: ServerListener) {
    this.listener = listener;
  }

  get process(): ServerProcess | undefined {
    return this.link.process;
  }

  send(frame: Frame, exchange?: Exchange): boolean {
    return this.link.send(frame, exchange);
  }

  pause(): void {
    this.link.pause();
  }

  resume(): void {
    this.link.resume();
  }

  close(reason: BridgeError): void {
    this.link.close(reason);
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    this.listener.fromServer(frame, exchange);
  }

  serverFault(fault: ServerFault): void {
    this.listener.serverFault(fault);
  }

  serverDrained(): void {
    this.listener.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    this.listener.serverClosed(reason);
  }
}
