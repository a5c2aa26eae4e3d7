import type { Clock } from '../deps.ts';
import type { Step } from './report.ts';

/** What a question came to, as far as the log needs it. */
export interface Answered {
  readonly words: string;
  readonly tookMs: number;
  readonly head?: { readonly status: number } | undefined;
}

/** Keeps what was sent and what came of it; knows what is being waited for. */
export class StepLog {
  readonly steps: Step[] = [];
  readonly #clock: Clock;
  readonly #waiting: (what: string) => void;
  #pending: { readonly request: string; readonly startedMs: number } | undefined;

  constructor(clock: Clock, waiting: (what: string) => void = () => undefined) {
    this.#clock = clock;
    this.#waiting = waiting;
  }

  /** Runs one question and writes down its outcome. */
  async run<Answer extends Answered>(request: string, ask: () => Promise<Answer>): Promise<Answer> {
    this.#pending = { request, startedMs: this.#clock.now() };
    this.waitFor(`the answer to ${request}`);
    const answer = await ask();
    this.#pending = undefined;
    this.add({ request, saw: answer.words, status: answer.head?.status, tookMs: answer.tookMs });
    return answer;
  }

  /** Shows what the probe waits for where that is no request whose steps are recorded. */
  waitFor(what: string): void {
    this.#waiting(what);
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
