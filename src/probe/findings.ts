import type { ServerConfig } from '../config/server.ts';
import type { Clock } from '../deps.ts';
import type { BridgeError } from '../errors.ts';
import type { UserTask } from '../http/login/login.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import type { Authorization, Offer, Step } from './report.ts';

/** Collects what is found while it is being found; when the time is up, what is there counts. */
export class Findings {
  readonly offers: Offer[] = [];
  readonly problems: string[] = [];
  readonly steps: StepLog;
  authorization: Authorization | undefined = undefined;

  constructor(steps: StepLog) {
    this.steps = steps;
  }

  offer<Draft extends Offer>(draft: Draft): Draft {
    this.offers.push(draft);
    return draft;
  }

  /** Why something ended, with the code to look it up by. */
  failure({ message, code, data }: BridgeError): void {
    this.problem(`${message} (${code})`);
    const status = data?.status;
    if (code !== 'ERR_UPSTREAM_AUTH' || (status !== 401 && status !== 403)) return;
    // A handshake that was refused says no more than that.
    this.authorization ??= {
      status,
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

/** What a question came to, as far as the log needs it. */
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

  /** Runs one question and writes down its outcome. */
  async run<Answer extends Answered>(request: string, ask: () => Promise<Answer>): Promise<Answer> {
    this.#pending = { request, startedMs: this.#clock.now() };
    this.waitFor(`the answer to ${request}`);
    const answer = await ask();
    this.#pending = undefined;
    this.add({ request, saw: answer.summary, status: answer.head?.status, tookMs: answer.tookMs });
    return answer;
  }

  /** Shows what the probe waits for where that is no request whose steps are recorded. */
  waitFor(what: string): void {
    this.#waiting(what);
  }

  /** Shows what the user is to do; undefined: nothing any more, so that the request is waited for again. */
  waitForUser(task: UserTask | undefined): void {
    if (task !== undefined) this.#waiting(task.what, task.limitMs);
    else if (this.#pending !== undefined) this.waitFor(`the answer to ${this.#pending.request}`);
  }

  add(step: Step): void {
    this.steps.push({ ...step, tookMs: Math.round(step.tookMs * 10) / 10 });
  }

  /** For questions at another path of the same server: the same log, with the path. */
  at(path: string): StepLog {
    return new StepLogAt(this, path, this.#clock);
  }

  /** The time is up: what was waited for counts as unanswered. Returns what that was. */
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

/** Asks for the newest revision with a handshake, and offers the server nothing. */
export function createInitializeRequest(id: number, clientInfo: Implementation): Frame {
  const protocolVersion = LATEST_LEGACY_REVISION.id;
  return requestFrame(id, INITIALIZE, { protocolVersion, capabilities: {}, clientInfo });
}

export interface ProbeConfig extends Pick<ServerConfig, 'protocol' | 'remote' | 'child' | 'limits'> {
  /** The time limit for everything but the clearing up. */
  readonly timeoutMs: number;
  /** Aborted: it ends sooner, and reports what it has. */
  readonly signal?: AbortSignal;
  readonly waiting?: Waiting;
}

/** A single question; one that gets no answer in this time gets none. */
export const STEP_TIMEOUT_MS = 10_000;
/** A stream is announced at once or not at all. */
export const STREAM_TIMEOUT_MS = 5000;
