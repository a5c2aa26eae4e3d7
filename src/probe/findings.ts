import type { ChildConfig, CommandTarget, ServerConfig } from '../config/server.ts';
import type { Clock } from '../deps.ts';
import type { BridgeError } from '../errors.ts';
import type { UserTask } from '../http/login/login.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import type { Authorization, Offer, Step } from './report.ts';

/** Collects the findings of a probe while it runs. After the time limit the report has what was found so far. */
export class Findings {
  readonly offers: Offer[] = [];
  readonly problems: string[] = [];
  readonly steps: StepLog;
  authorization: Authorization | undefined = undefined;
  /** True if a broker has refused the account. */
  isAccountRefused = false;

  constructor(steps: StepLog) {
    this.steps = steps;
  }

  offer<Draft extends Offer>(draft: Draft): Draft {
    this.offers.push(draft);
    return draft;
  }

  /** Adds the reason for a failure, with its error code. */
  failure({ message, code, data }: BridgeError): void {
    this.problem(`${message} (${code})`);
    const status = data?.status;
    if (code === 'ERR_UPSTREAM_AUTH' && data?.reasonCode !== undefined) this.isAccountRefused = true;
    if (code !== 'ERR_UPSTREAM_AUTH' || (status !== 401 && status !== 403)) return;
    // A rejected handshake gives only the status.
    this.authorization ??= {
      status,
      token: undefined,
      scheme: undefined,
      resourceMetadata: undefined,
      metadataSource: undefined,
      authorizationServers: [],
      scopes: [],
    };
  }

  problem(sentence: string): void {
    if (!this.problems.includes(sentence)) this.problems.push(sentence);
  }
}

/** The outcome of a request, as far as the step log needs it. */
export interface Answered {
  readonly summary: string;
  readonly tookMs: number;
  readonly head?: { readonly status: number } | undefined;
}

/**
 * Hears what is waited for from now on: `the answer to initialize`.
 * @param limitMs the time that it may take from now on; undefined: no more is known than the limit of the whole probe
 */
export type Waiting = (what: string, limitMs?: number) => void;

/** Keeps what was sent and what came of it; knows what is being waited for. */
export class StepLog {
  readonly steps: Step[] = [];
  readonly #clock: Clock;
  readonly #waiting: Waiting;
  #pending: { readonly request: string; readonly startedMs: number } | undefined;

  constructor(clock: Clock, waiting: Waiting = () => undefined) {
    this.#clock = clock;
    this.#waiting = waiting;
  }

  /** Runs a request and records its outcome. */
  async run<Answer extends Answered>(request: string, ask: () => Promise<Answer>): Promise<Answer> {
    this.#pending = { request, startedMs: this.#clock.now() };
    this.waitFor(`the answer to ${request}`);
    const answer = await ask();
    this.#pending = undefined;
    this.add({ request, saw: answer.summary, status: answer.head?.status, tookMs: answer.tookMs });
    return answer;
  }

  /** Shows what the probe waits for, if that is no recorded request. */
  waitFor(what: string): void {
    this.#waiting(what);
  }

  /** Shows what the user is to do; undefined: nothing anymore, so that the request is waited for again. */
  waitForUser(task: UserTask | undefined): void {
    if (task !== undefined) this.#waiting(task.what, task.limitMs);
    else if (this.#pending !== undefined) this.waitFor(`the answer to ${this.#pending.request}`);
  }

  add(step: Step): void {
    this.steps.push({ ...step, tookMs: Math.round(step.tookMs * 10) / 10 });
  }

  /**
   * Returns a view of this log for requests to another path of the same server, which adds the path to each request.
   */
  at(path: string): StepLog {
    return new StepLogAt(this, path, this.#clock);
  }

  /** Records the pending request as unanswered after the time limit, and returns its name. */
  giveUp(): string | undefined {
    const pending = this.#pending;
    if (pending === undefined) return undefined;
    this.#pending = undefined;
    const { request, startedMs } = pending;
    this.add({
      request,
      saw: 'no answer before the time was up',
      status: undefined,
      tookMs: this.#clock.now() - startedMs,
    });
    return request;
  }
}

class StepLogAt extends StepLog {
  readonly #log: StepLog;
  readonly #path: string;

  constructor(log: StepLog, path: string, clock: Clock) {
    super(clock);
    this.#log = log;
    this.#path = path;
  }

  override run<Answer extends Answered>(request: string, ask: () => Promise<Answer>): Promise<Answer> {
    return this.#log.run(`${request} at ${this.#path}`, ask);
  }

  override add(step: Step): void {
    this.#log.add({ ...step, request: `${step.request} at ${this.#path}` });
  }
}

/** An `initialize` with the newest legacy revision and no capabilities. */
export function createInitializeRequest(id: number, clientInfo: Implementation): Frame {
  const protocolVersion = LATEST_LEGACY_REVISION.id;
  return requestFrame(id, INITIALIZE, { protocolVersion, capabilities: {}, clientInfo });
}

export interface ProbeConfig extends Pick<ServerConfig, 'protocol' | 'remote' | 'child' | 'limits' | 'replaySpeed'> {
  /** The time limit for everything except closing. */
  readonly timeoutMs: number;
  /** If aborted, the probe ends early and reports what it has found. */
  readonly signal?: AbortSignal;
  readonly waiting?: Waiting;
  /** Given if the server is the aggregate. */
  readonly aggregate?: ProbedAggregate | undefined;
}

/** The aggregate as the server of a client that starts `connect`. */
export interface ProbedAggregate {
  readonly target: CommandTarget;
  /** The process of that command. */
  readonly child: ChildConfig;
  /** The words that name it on a command line. */
  readonly shown: string;
}

/** Time limit for the response to one request. */
export const STEP_TIMEOUT_MS = 10_000;
/** Time limit for the response to a GET; servers open a stream at once or not at all. */
export const STREAM_TIMEOUT_MS = 5000;
