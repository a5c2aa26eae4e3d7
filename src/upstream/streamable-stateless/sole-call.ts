import { LinkedList, ListMember } from '../../collections/short-lived-values.ts';
import type { BridgeError } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { ModernQuestions } from '../../mcp/classify/modern-questions.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallHandler, CallServer, ModernCall } from '../../relay/modern-call.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { MAX_WAITING_BYTES } from '../remote/link-messages.ts';
import { CallQuestion } from '../remote/login-question.ts';
import type { PostedMessage, StatelessCallHost } from './call-host.ts';
import { ListenCall } from './listen-call.ts';
import { RequestCall } from './request-call.ts';
import type { StatelessServer } from './server-state.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Posts each modern request that comes alone to a server over HTTP. */
export class SoleCalls implements CallServer {
  readonly #server: StatelessServer;
  readonly #open = new LinkedList<SoleCall>();

  constructor(server: StatelessServer) {
    this.#server = server;
  }

  take(call: ModernCall, request: Frame): boolean {
    const sole = new SoleCall(this.#server, call, request);
    call.servedBy = sole;
    this.#open.add(sole);
    sole.start();
    return request.bytes.length < MAX_WAITING_BYTES;
  }

  close(reason: BridgeError): void {
    for (const sole of this.#open.toArray()) sole.close(reason);
  }
}

/** A modern request that comes alone, while its server works on it. */
class SoleCall extends ListMember implements StatelessCallHost, CallHandler {
  readonly server: StatelessServer;
  readonly tools: ToolHeaders;
  readonly cookies = new SessionCookies();
  readonly #call: ModernCall;
  readonly #posted: RequestCall | ListenCall;
  #questions: ModernQuestions | undefined = undefined;

  constructor(server: StatelessServer, call: ModernCall, request: Frame) {
    super();
    this.server = server;
    this.tools = server.toolsOf(call.principal);
    this.#call = call;
    this.#posted =
      request.method === LISTEN ? new ListenCall(this, request, call) : new RequestCall(this, request, call);
  }

  start(): void {
    this.#posted.start();
  }

  // ---- from the call

  withdraw(): void {
    this.unlink();
    this.#posted.abort();
  }

  pause(): void {
    this.#posted.pause();
  }

  resume(): void {
    this.#posted.resume();
  }

  close(reason: BridgeError): void {
    this.withdraw();
    this.#call.fail(reason);
  }

  // ---- from the posted message

  /** A client that answers the question repeats its request in another call, which knows nothing of this one. */
  get question(): CallQuestion {
    return new CallQuestion();
  }

  forwardedWith(): Lane['headers'] {
    return this.#call.lane.headers;
  }

  left(): void {
    this.#call.serverDrained();
  }

  drop(frame: Frame): void {
    if (frame.kind !== 'request') return this.server.environment.idWarnings.unknown(frame.id as JsonRpcId);
    this.#questions ??= new ModernQuestions();
    this.#questions.ignore(frame, this.server.environment.log);
  }

  notify(_posted: PostedMessage, notification: Frame): void {
    this.#call.fromServer(notification);
  }

  answered(_posted: PostedMessage, answer: Frame): void {
    this.unlink();
    this.#call.fromServer(answer);
  }

  failed(_posted: PostedMessage, error: BridgeError): void {
    this.unlink();
    this.server.failed(error);
    if (!this.#call.isOpen) return;
    this.#call.log.error({ code: error.code }, error.message);
    this.#call.fail(error);
  }

  ended(): void {}
}
