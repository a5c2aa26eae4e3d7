import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { ProbeOutcome } from '../../mcp/classify/probe-answer.ts';
import { PING } from '../../mcp/vocabulary/methods.ts';
import { METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import { Call, type ClientMessage, type Lane } from '../../relay/call.ts';
import type { ServerFault, ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import type { Arrival, Connection, Connector } from '../connection.ts';
import { type Answer, answers, describeAttempt, outcomeOfError, outcomeOfResponse } from './answer.ts';
import type { FoundLink } from './detecting-link.ts';

type Settle = (outcome: ProbeOutcome, error?: BridgeError) => void;

/** A request of a client that is being tried. */
interface Trial {
  readonly id: JsonRpcId | undefined;
  readonly settle: Settle;
}

/**
 * Ids count down from the largest that every server reads. The next owner of the connection counts up, so a late answer
 * is not taken for one of its own.
 */
const FIRST_ID = 2 ** 31 - 1;
const LANE: Lane = { isOpen: true };
const DONE = new BridgeError('ERR_SESSION_CLOSED', 'The detection of the server is complete.');

/**
 * Asks a server on a connection that has no other owner yet, or tries a client's request on it. Afterward the
 * connection is handed over, and messages bypass the prober.
 */
export class Prober implements ServerListener, FoundLink {
  readonly connection: Connection;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #lane: Lane;
  /** Questions of the bridge that are not answered, by id. */
  readonly #pending = new Map<JsonRpcId, Settle>();
  #nextId = FIRST_ID;
  #end: BridgeError | undefined;
  #trial: Trial | undefined;

  /**
   * Opens a connection. Throws what `connect` throws.
   * @param headers headers of the client that needs the answer, as far as they are forwarded
   */
  constructor(connector: Connector, clock: Clock, headers?: Lane['headers']) {
    this.#clock = clock;
    this.#name = connector.name;
    this.#lane = headers === undefined ? LANE : { ...LANE, headers };
    this.connection = connector.connect();
    this.connection.listener = this;
  }

  /** The reason for the end of the connection. Undefined while it is open. */
  get end(): BridgeError | undefined {
    return this.#end;
  }

  /** See `ServerProcess`; undefined if the connection has no process. */
  get gone(): Promise<void> | undefined {
    return this.connection.process?.gone;
  }

  // ---- questions of the bridge

  /** Never rejects. After `timeoutMs` the outcome is `silence`, and a later answer is dropped. */
  request(method: string, params: object, timeoutMs: number): Promise<Answer<ProbeOutcome>> {
    return this.ask(requestFrame(this.takeId(), method, params), timeoutMs);
  }

  /** Returns the id for a request whose frame the caller makes. */
  takeId(): number {
    const id = this.#nextId;
    this.#nextId -= 1;
    return id;
  }

  /** Sends a request made with `takeId`. */
  ask(frame: Frame, timeoutMs: number): Promise<Answer<ProbeOutcome>> {
    const id = frame.id as JsonRpcId;
    return this.#answer(`no answer within ${timeoutMs} ms`, (settle, startedMs) => {
      const cancelTimer = this.#clock.after(timeoutMs, () => settleOnce({ kind: 'silence' }));
      const settleOnce: Settle = (outcome, error) => {
        cancelTimer();
        this.#pending.delete(id);
        settle(outcome, error);
      };
      this.#pending.set(id, settleOnce);
      if (this.#end !== undefined) return settleOnce(outcomeOfError(this.#end), this.#end);
      this.connection.send(frame, new Call(id, frame.method ?? '', this.#lane, undefined, startedMs));
    });
  }

  #answer(silence: string, start: (settle: Settle, startedMs: number) => void): Promise<Answer<ProbeOutcome>> {
    const startedMs = this.#clock.now();
    return new Promise((resolve) => {
      start((outcome, error) => {
        const summary = outcome.kind === 'silence' ? silence : describeAttempt(outcome, error, { name: this.#name });
        resolve({ outcome, head: undefined, error, summary, tookMs: this.#clock.now() - startedMs });
      }, startedMs);
    });
  }

  notify(method: string, params?: object): void {
    if (this.#end === undefined) this.connection.send(notificationFrame(method, params));
  }

  // ---- the request of a client

  /**
   * Sends a client's request unchanged. Its answer, and all other messages of the server, stay in the connection for
   * its next owner. The caller limits the time. Never rejects, and does not resolve if `close` is called here.
   */
  try({ frame, call }: ClientMessage): Promise<Answer<ProbeOutcome>> {
    this.connection.listener = undefined;
    this.connection.onUnheard = (arrival) => this.#unheard(arrival);
    return this.#answer('no answer', (settle) => {
      this.#trial = { id: frame.id, settle };
      this.connection.send(frame, call);
    });
  }

  /** Looks at arrivals while a client's request is tried, and takes only the answers to the bridge's questions. */
  #unheard(arrival: Arrival): 'kept' | 'taken' {
    switch (arrival.kind) {
      case 'message':
        return this.#unheardMessage(arrival.frame, arrival.call);
      case 'fault':
        return this.#unheardFault(arrival.fault);
      case 'end':
        this.serverClosed(arrival.reason);
        return 'kept';
    }
  }

  #unheardMessage(frame: Frame, call: Call | undefined): 'kept' | 'taken' {
    // Only a legacy server sends requests, and it may wait for the client's answer before it answers the handshake. So
    // the request is proof enough.
    if (frame.kind === 'request') this.#tried({ kind: 'result', result: {} });
    if (!frame.isResponse) return 'kept';
    if (this.#answersOwn(frame, call)) return 'taken';
    if (this.#trial !== undefined && answers(frame, this.#trial.id)) this.#tried(outcomeOfResponse(frame, undefined));
    return 'kept';
  }

  #unheardFault(fault: ServerFault): 'kept' | 'taken' {
    if (this.#failsOwn(fault)) return 'taken';
    if (fault.id === undefined || fault.id === this.#trial?.id) this.#tried(outcomeOfError(fault.error), fault.error);
    return 'kept';
  }

  #tried(outcome: ProbeOutcome, error?: BridgeError): void {
    const trial = this.#trial;
    this.#trial = undefined;
    trial?.settle(outcome, error);
  }

  // ---- the hand-over

  /** Hands the connection over to a client, with the messages that the server has sent to it so far. */
  open(client: ServerListener): Connection {
    this.connection.listener = client;
    return this.connection;
  }

  /**
   * Lets go of the connection, for its next owner. Messages to a client whose request was tried are dropped,
   * because that client gets another connection.
   */
  release(): Connection {
    this.connection.listener = undefined;
    this.connection.dropUnheard();
    return this.connection;
  }

  /** @param reason default: all questions have been asked */
  close(reason = DONE): void {
    this.#end ??= reason;
    this.connection.close(reason);
    for (const settle of [...this.#pending.values()]) settle({ kind: 'lost' }, reason);
  }

  // ---- from the server, while only the bridge asks

  fromServer(frame: Frame, call?: Call): void {
    if (frame.isResponse) this.#answersOwn(frame, call);
    else if (frame.kind === 'request') this.#refuse(frame);
  }

  #answersOwn(frame: Frame, call: Call | undefined): boolean {
    const id = call?.id ?? frame.id ?? this.#soleId();
    if (typeof id !== 'number' || id <= this.#nextId || id > FIRST_ID) return false;
    this.#pending.get(id)?.(outcomeOfResponse(frame, undefined));
    return true;
  }

  /**
   * Returns the only open question. An error without an id belongs to it, because the server could not read a request.
   */
  #soleId(): JsonRpcId | undefined {
    return this.#pending.size === 1 ? this.#pending.keys().next().value : undefined;
  }

  #refuse(request: Frame): void {
    const id = request.id as JsonRpcId;
    const refusal = { code: METHOD_NOT_FOUND, message: `This client does not do ${request.method}.` };
    this.connection.send(request.method === PING ? resultFrame(id, {}) : errorFrame(id, refusal));
  }

  serverFault(fault: ServerFault): void {
    this.#failsOwn(fault);
  }

  #failsOwn({ id, error }: ServerFault): boolean {
    const settle = id === undefined ? undefined : this.#pending.get(id);
    settle?.(outcomeOfError(error), error);
    return settle !== undefined;
  }

  serverDrained(): void {}

  serverClosed(reason: BridgeError): void {
    this.#end = reason;
    for (const settle of [...this.#pending.values()]) settle(outcomeOfError(reason), reason);
    this.#tried(outcomeOfError(reason), reason);
  }
}
