import { assertNever, BridgeError } from '../../errors.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { ProbeOutcome } from '../../mcp/classify/probe-answer.ts';
import { createDiscoverRequest, modernHeaders } from '../../mcp/vocabulary/discover.ts';
import { SESSION_ID_HEADER, SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { DISCOVER, INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import type { ClientMessage } from '../../relay/call.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Connector } from '../connection.ts';
import { endSession } from '../remote/end-session.ts';
import { readRefusal } from '../remote/refusal.ts';
import type { Answer } from './answer.ts';
import { askBesideStream, askEventStream, askHttp, type HttpTarget } from './ask-url.ts';
import { untilAborted } from './deadline.ts';
import type { Attempts, Step } from './detection.ts';
import { type Attempt, detectError } from './detection-errors.ts';
import { Prober } from './prober.ts';

export interface OwnAttemptsOptions {
  readonly target: HttpTarget;
  readonly clientInfo: Implementation;
  /** The time limit for each question. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Attempts of the bridge itself, used if there is no client's `initialize`. */
export class OwnAttempts implements Attempts {
  readonly carrier = 'http';
  readonly name: string;
  protected readonly options: OwnAttemptsOptions;
  readonly #sessions: string[] = [];
  #nextId = 1;

  constructor(options: OwnAttemptsOptions) {
    this.name = showUrl(options.target.url);
    this.options = options;
  }

  ask(step: Step, revision: string): Promise<Answer> {
    switch (step) {
      case 'discover':
        return this.#discover(revision);
      case 'initialize':
        return this.initialize();
      case 'eventStream':
        return this.eventStream();
      default:
        return assertNever(step);
    }
  }

  #discover(revision: string): Promise<Answer> {
    const { target, clientInfo, timeoutMs, signal } = this.options;
    const frame = createDiscoverRequest({ id: this.#nextId++, revision, clientInfo });
    const headers = modernHeaders(DISCOVER, revision);
    return askBesideStream(target, signal, (signal) => askHttp(target, { frame, headers, timeoutMs, signal }));
  }

  /** Sends the request that begins each legacy revision. It has no headers for session and version. */
  protected async initialize(): Promise<Answer> {
    const { target, clientInfo, timeoutMs, signal } = this.options;
    const protocolVersion = LATEST_LEGACY_REVISION.id;
    const frame = requestFrame(this.#nextId++, INITIALIZE, { protocolVersion, capabilities: {}, clientInfo });
    const ask = (signal: AbortSignal) => askHttp(target, { frame, headers: {}, timeoutMs, signal });
    const answer = await askBesideStream(target, signal, ask);
    const session = answer.head?.headers[SESSION_ID_HEADER];
    if (typeof session === 'string') this.#sessions.push(session);
    return answer;
  }

  protected eventStream(): Promise<Answer> {
    const { target, timeoutMs, signal } = this.options;
    return askEventStream(target, { headers: {}, until: 'endpoint', timeoutMs, signal });
  }

  /** Returns the transport's error if there is one. */
  errorOf({ error, head }: Answer): BridgeError {
    if (error !== undefined) return error;
    if (head !== undefined) return readRefusal(this.options.target.url, head, NO_BODY).error;
    return new BridgeError('ERR_UPSTREAM_CLOSED', `The server at ${this.name} did not answer.`);
  }

  nothingFound(tried: readonly Attempt[]): BridgeError {
    return detectError(this.options.target.url, tried);
  }

  /** Ends the sessions that the attempts opened. [spec 2025-11-25 transports#session-management] */
  async close(): Promise<void> {
    await Promise.all(
      this.#sessions.splice(0).map((id) => endSession(this.options.target, { [SESSION_ID_HEADER_OUT]: id })),
    );
  }
}

const NO_BODY = Buffer.alloc(0);

export interface TrialAttemptsOptions extends OwnAttemptsOptions {
  /** The client's `initialize`. */
  readonly request: ClientMessage;
  readonly streamable: Connector;
  readonly httpSse: Connector;
}

/** Attempts with the `initialize` of the client that waits. Only `server/discover` is the bridge's own. */
export class TrialAttempts extends OwnAttempts {
  readonly #trial: TrialAttemptsOptions;
  /** The latest attempt that got an answer from the server. */
  #answered: Prober | undefined;

  constructor(options: TrialAttemptsOptions) {
    super(options);
    this.#trial = options;
  }

  protected override initialize(): Promise<Answer> {
    const { target, signal, streamable } = this.#trial;
    return askBesideStream(target, signal, (signal) => this.#try(streamable, signal));
  }

  /** The server speaks HTTP+SSE if it answers over it, even with an error. */
  protected override async eventStream(): Promise<Answer> {
    const answer = await this.#try(this.#trial.httpSse, this.#trial.signal);
    return answer.error === undefined ? { ...answer, outcome: { kind: 'found' }, summary: 'answered' } : answer;
  }

  async #try(connector: Connector, signal: AbortSignal): Promise<Answer<ProbeOutcome>> {
    const { request, target } = this.#trial;
    signal.throwIfAborted();
    const trial = new Prober(connector, target.http.clock);
    // The connection is closed as soon as this question is given up, because another question may follow before it is
    // answered.
    const giveUp = (): void => trial.close(NOT_THIS_WAY);
    signal.addEventListener('abort', giveUp, { once: true });
    const answer = await untilAborted(trial.try(request), signal);
    signal.removeEventListener('abort', giveUp);
    if (answer.error === undefined) {
      this.#answered?.close(NOT_THIS_WAY);
      this.#answered = trial;
    } else {
      trial.close(NOT_THIS_WAY);
    }
    return answer;
  }

  /** Takes the attempt that was answered. Its connection then belongs to the caller. */
  take(): Prober | undefined {
    const trial = this.#answered;
    this.#answered = undefined;
    return trial;
  }

  /** Closes the connection that was not taken. May be called twice. */
  override async close(): Promise<void> {
    this.#answered?.close(NOT_THIS_WAY);
    this.#answered = undefined;
    await super.close();
  }
}

const NOT_THIS_WAY = new BridgeError('ERR_SESSION_CLOSED', 'This was only a trial.');
