import { BridgeError } from '../errors.ts';
import { ModernQuestions } from '../mcp/classify/modern-questions.ts';
import type { RequestMetadata } from '../mcp/classify/request-metadata.ts';
import type { Frame } from '../wire/frame.ts';
import type { Call } from './call.ts';
import { withdrawal } from './calls.ts';
import { type CallHandler, type CallServer, type ModernCall, wordsOf } from './modern-call.ts';
import type { LinkOwner, ServerFault, UpstreamLink } from './ports.ts';

/** Dials the link of one call. Throws a BridgeError if that is impossible now. */
export type DialCall = (owner: LinkOwner, call: ModernCall, metadata: RequestMetadata) => UpstreamLink;

/** Serves each modern call on a link of its own, which is closed when the call ends. */
export class CallsOverLinks implements CallServer {
  readonly #dial: DialCall;

  constructor(dial: DialCall) {
    this.#dial = dial;
  }

  take(call: ModernCall, request: Frame, metadata: RequestMetadata): boolean {
    try {
      const served = new CallOverLink(call, (own) => this.#dial(own, call, metadata));
      call.servedBy = served;
      return served.send(request);
    } catch (thrown) {
      if (!(thrown instanceof BridgeError)) throw thrown;
      call.fail(thrown);
      return true;
    }
  }
}

/** A call on a link of its own. Every message on the link belongs to the call, so nothing has to be looked up. */
class CallOverLink implements CallHandler, LinkOwner {
  readonly #call: ModernCall;
  #link: UpstreamLink;
  #questions: ModernQuestions | undefined = undefined;

  constructor(call: ModernCall, dial: (owner: LinkOwner) => UpstreamLink) {
    this.#call = call;
    this.#link = dial(this);
  }

  send(request: Frame): boolean {
    return this.#link.send(request, this.#call);
  }

  // ---- from the call

  withdraw(call: ModernCall, reason: BridgeError): void {
    if (call.state.kind === 'cancelled') this.#link.send(withdrawal(call, wordsOf(call)), call);
    this.#link.close(reason);
  }

  pause(): void {
    this.#link.pause();
  }

  resume(): void {
    this.#link.resume();
  }

  // ---- from the server

  serverFound(link: UpstreamLink): void {
    this.#link = link;
  }

  fromServer(frame: Frame, known?: Call): void {
    const call = this.#call;
    if (!call.isOpen) return;
    if (frame.kind === 'notification') return call.fromServer(frame);
    if (frame.kind === 'request') {
      // A modern server must not send requests, so it gets no answer.
      // [spec 2026-07-28 transports/streamable-http#receiving-messages]
      this.#questions ??= new ModernQuestions();
      return this.#questions.ignore(frame, call.log);
    }
    if (known !== call && frame.id !== undefined && frame.id !== call.id) {
      return call.log.debug({ id: frame.id }, 'server answered a request that is not open');
    }
    call.fromServer(frame);
    this.#link.close(ANSWERED);
  }

  serverFault({ error, kind, id }: ServerFault): void {
    const call = this.#call;
    if (!call.isOpen) return;
    call.log.error({ code: error.code }, error.message);
    if (kind === 'request' || kind === 'notification') return;
    if (id === undefined || id === call.id) this.#fail(error);
  }

  serverDrained(): void {
    this.#call.serverDrained();
  }

  serverClosed(reason: BridgeError): void {
    if (this.#call.isOpen) this.#fail(reason);
  }

  #fail(reason: BridgeError): void {
    this.#call.fail(reason);
    this.#link.close(reason);
  }
}

const ANSWERED = new BridgeError('ERR_SESSION_CLOSED', 'The call was answered.');
