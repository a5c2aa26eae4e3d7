/**
 * Detects what a server speaks. Questions are asked one after the other, because a server may open a session or do its
 * work for each of them. Only a POST without an answer gets a GET beside it, because servers of HTTP+SSE may not answer
 * such a POST. The meaning of an answer is defined in mcp/classify/probe-answer.ts, and what follows it in the tables
 * below. [spec 2026-07-28 basic/transports] backward compatibility
 */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { assertNever, type BridgeError } from '../../errors.ts';
import {
  classifyInitialize,
  classifyProbe,
  type InitializeVerdict,
  type ProbeOutcome,
  type ProbeVerdict,
} from '../../mcp/classify/probe-answer.ts';
import { findCommonModern, LATEST_MODERN_REVISION, type ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Answer } from './answer.ts';
import { wait } from './deadline.ts';
import { type Attempt, noCommonRevisionError } from './detection-errors.ts';

/**
 * - `discover`: `server/discover`, which no legacy server implements.
 * - `initialize`: the handshake of the legacy era, over HTTP by POST.
 * - `eventStream`: GET for the event stream that begins with `endpoint`, as in HTTP+SSE.
 */
export type Step = 'discover' | 'initialize' | 'eventStream';

/** Order for a client of the legacy era, whose `initialize` tells most and costs no extra request. */
export const LEGACY_FIRST: readonly Step[] = ['initialize', 'discover', 'eventStream'];
export const MODERN_FIRST: readonly Step[] = ['discover', 'initialize', 'eventStream'];

/** Asks one server. */
export interface Attempts {
  readonly carrier: 'pipe' | 'http';
  /** The server's name in messages. */
  readonly name: string;
  /**
   * Asks one question. May be called twice for one step. Rejects only when the whole detection is given up.
   * @param revision the revision that `server/discover` names
   */
  ask(step: Step, revision: string): Promise<Answer>;
  /**
   * Returns the error that a client gets for an answer that reveals no era. Undefined if the answer says no more than
   * that.
   */
  errorOf(answer: Answer): BridgeError | undefined;
  /** Returns the error for a detection whose attempts have all failed. */
  nothingFound(tried: readonly Attempt[]): BridgeError;
}

export interface DetectOptions {
  readonly attempts: Attempts;
  readonly order: readonly Step[];
  /**
   * `session`: detect how a session is opened. `era`: detect only if the server is modern, with no more questions than
   * that takes.
   */
  readonly goal: 'session' | 'era';
  /** The revision that `server/discover` names first. Default: the latest. */
  readonly revision?: string;
  /** Called with each attempt when its outcome is known. */
  readonly note?: (attempt: Attempt) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export type Detection =
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId; readonly answer: Answer }
  | {
      readonly kind: 'legacy';
      /**
       * The step that the server accepted: `initialize` or `eventStream`. If only the era was asked for, `eventStream`
       * if the server would accept that, and `discover` if that is unknown.
       */
      readonly by: Step;
      /** `weak`: the server was failing, or did not get the question unchanged. */
      readonly confidence: 'firm' | 'weak';
      readonly answer: Answer;
    }
  /** The server understood and refused `initialize`, and no other step succeeded. The error is the server's. */
  | { readonly kind: 'refused'; readonly error: RpcError };

/** Pause before a failing server is asked once more. */
export const RETRY_PAUSE_MS = 500;
/** Pause before a busy server that names no time is asked again. Doubled each time. */
export const BUSY_PAUSE_MS = 1000;
/** Longest pause, because a client waits meanwhile. If the server asks for more, the client gets its error. */
export const MAX_WAIT_MS = 10_000;
export const MAX_BUSY_REPEATS = 3;

/**
 * The consequence of an answer.
 * - `found`: the server speaks this.
 * - `repeat`: the same question is asked once more, as the verdict wants it.
 * - `next`: the next step follows.
 * - `no-posts`: the next step follows, but not `initialize`, which would get no answer either.
 * - `event-stream`: the event stream follows, and no other step.
 * - `refused`: the next step follows. If no step succeeds, this error is the result.
 * - `trouble`: the next step follows after a second try, but no verdict is firm anymore.
 * - `stop`: no other question would get a better answer.
 * - `unknown-revision`: the server is modern, but has no revision in common with the bridge.
 */
type Move =
  | 'found'
  | 'repeat'
  | 'next'
  | 'no-posts'
  | 'event-stream'
  | 'refused'
  | 'trouble'
  | 'stop'
  | 'unknown-revision';

const AFTER_DISCOVER: Readonly<Record<ProbeVerdict['kind'], Move>> = {
  modern: 'found',
  'modern-retry': 'repeat',
  'headers-lost': 'repeat',
  'no-common-revision': 'unknown-revision',
  legacy: 'next',
  'not-answering': 'no-posts',
  'http-sse': 'event-stream',
  unauthorized: 'stop',
  busy: 'stop',
  failing: 'trouble',
  unreachable: 'stop',
};

const AFTER_INITIALIZE: Readonly<Record<InitializeVerdict['kind'], Move>> = {
  accepted: 'found',
  modern: 'found',
  refused: 'refused',
  elsewhere: 'next',
  'http-sse': 'event-stream',
  unauthorized: 'stop',
  busy: 'stop',
  failing: 'trouble',
  unreachable: 'stop',
};

/**
 * If the event stream was asked for last and there is none, the server never was one of HTTP+SSE. If it was asked for
 * first, a busy or failing server has that trouble now.
 */
const AFTER_EVENT_STREAM: Readonly<Record<StreamVerdict['kind'], Move | 'stop-if-first'>> = {
  found: 'found',
  accepted: 'next',
  modern: 'next',
  refused: 'next',
  elsewhere: 'next',
  'http-sse': 'next',
  unauthorized: 'stop',
  busy: 'stop-if-first',
  failing: 'stop-if-first',
  unreachable: 'stop',
};

const FOUND = { kind: 'found' } as const;
type StreamVerdict = InitializeVerdict | typeof FOUND;
type Verdict = ProbeVerdict | StreamVerdict;

const QUESTIONS: Readonly<Record<Step, Readonly<Record<Attempts['carrier'], string>>>> = {
  discover: { http: 'POST server/discover', pipe: 'server/discover' },
  initialize: { http: 'POST initialize', pipe: 'initialize' },
  eventStream: { http: 'GET for an event stream', pipe: '' },
};

/**
 * Detects what a server speaks.
 * @throws BridgeError of the transport, ERR_UPSTREAM_REVISION, or ERR_UPSTREAM_DETECT, which lists all attempts; or
 *   the reason of the signal
 */
export function detect(options: DetectOptions): Promise<Detection> {
  return new Detector(options).run();
}

/** Outcomes of `server/discover` that may have another cause than the question. */
const LEAVES_OPEN: ReadonlySet<Answer['outcome']['kind'] | undefined> = new Set(['silence', 'exited', 'lost'] as const);

/** No result yet. */
interface Open {
  readonly kind: 'open';
  readonly answer: Answer;
}

class Detector {
  readonly #options: DetectOptions;
  readonly #tried: Attempt[] = [];
  #confidence: 'firm' | 'weak' = 'firm';
  /**
   * The error of the first step that failed without revealing anything. It is the result unless another step reveals
   * more.
   */
  #failure: BridgeError | undefined;
  #refusal: Extract<ProbeOutcome, { kind: 'error' }> | undefined;
  /** True if the server accepts POSTs without answering them. */
  #isMute = false;
  /** True if the server has shown the event stream of HTTP+SSE. Nothing else is then worth asking. */
  #isHttpSse = false;
  /** The outcome of `server/discover`. The question is asked again at the end only if that was silence. */
  #discovered: Answer['outcome']['kind'] | undefined;

  constructor(options: DetectOptions) {
    this.#options = options;
  }

  async run(): Promise<Detection> {
    const { order, revision = LATEST_MODERN_REVISION } = this.#options;
    for (const step of order) {
      if (!this.#isWorthAsking(step)) continue;
      const taken = await this.#take(step, revision, false);
      if (taken.kind !== 'open') return taken;
      if (this.#hasShownEra) {
        const by = this.#isHttpSse ? 'eventStream' : 'discover';
        return { kind: 'legacy', by, confidence: this.#confidence, answer: taken.answer };
      }
    }
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#refusal !== undefined && this.#options.goal === 'session') {
      return { kind: 'refused', error: this.#refusal.error };
    }
    throw this.#options.attempts.nothingFound(this.#tried);
  }

  /**
   * True if the answers show that the server is not modern, and only the era was asked for. A silent server may still
   * be starting, and one that exited or disconnected may have had another reason than the question. Over HTTP a modern
   * server has to answer. [spec 2026-07-28 basic/transports#stdio]
   */
  get #hasShownEra(): boolean {
    if (this.#options.goal !== 'era' || this.#refusal !== undefined) return false;
    return this.#options.attempts.carrier === 'http' || !LEAVES_OPEN.has(this.#discovered);
  }

  #isWorthAsking(step: Step): boolean {
    if (this.#isHttpSse) return step === 'eventStream';
    switch (step) {
      case 'discover':
        return this.#discovered === undefined || this.#discovered === 'silence';
      case 'initialize':
        return !this.#isMute;
      case 'eventStream':
        // A server that understood and refused a question speaks another transport, and one that is out of reach behind
        // a gateway has no stream either. But some servers answer a POST with 500 if they expect none.
        return (
          this.#refusal?.http?.status !== 200 && (this.#failure === undefined || this.#failure.data?.status === 500)
        );
      default:
        return assertNever(step);
    }
  }

  async #take(step: Step, revision: string, isRetry: boolean): Promise<Detection | Open> {
    const isFirst = this.#tried.length === 0;
    const { answer, verdict } = await this.#ask(step, revision, isRetry);
    if (step === 'discover') this.#discovered = answer.outcome.kind;
    const move = moveAfter(step, verdict, isFirst);
    switch (move) {
      case 'found':
        return this.#found(step, verdict, answer);
      case 'repeat':
        return this.#take(step, verdict.kind === 'modern-retry' ? verdict.revision : revision, true);
      case 'no-posts':
        this.#isMute = true;
        break;
      case 'event-stream':
        this.#isHttpSse = true;
        // The stream was found beside a POST, which the server may have answered later.
        if (answer.head === undefined) this.#confidence = 'weak';
        break;
      case 'refused':
        if (answer.outcome.kind === 'error') this.#refusal = answer.outcome;
        break;
      case 'next':
        if (verdict.kind === 'legacy' && verdict.confidence === 'weak') this.#confidence = 'weak';
        break;
      case 'trouble':
        this.#inTrouble(answer);
        break;
      case 'stop':
        // The refusal of `initialize` tells the client more than that the server is busy now.
        if (verdict.kind !== 'busy' || this.#refusal === undefined) throw this.#errorOf(answer);
        break;
      case 'unknown-revision':
        throw this.#unknownRevision('supported' in verdict ? verdict.supported : []);
      default:
        assertNever(move);
    }
    return { kind: 'open', answer };
  }

  #found(step: Step, verdict: Verdict, answer: Answer): Detection {
    if (verdict.kind !== 'modern') return { kind: 'legacy', by: step, confidence: this.#confidence, answer };
    if ('isDraft' in verdict) {
      if (verdict.isDraft) this.#options.log.warn('the server speaks a draft of the modern era');
      return { kind: 'modern', revision: verdict.revision, answer };
    }
    const revision = findCommonModern(verdict.supported);
    if (revision === undefined) throw this.#unknownRevision(verdict.supported);
    return { kind: 'modern', revision, answer };
  }

  #inTrouble(answer: Answer): void {
    // A process or connection that has failed is gone, and cannot be asked anything else.
    if (this.#options.attempts.carrier === 'pipe' && this.#refusal === undefined) throw this.#errorOf(answer);
    this.#confidence = 'weak';
    if (this.#refusal === undefined) this.#failure ??= this.#errorOf(answer);
  }

  #errorOf(answer: Answer): BridgeError {
    const { attempts } = this.#options;
    return attempts.errorOf(answer) ?? attempts.nothingFound(this.#tried);
  }

  #unknownRevision(supported: readonly string[]): BridgeError {
    return noCommonRevisionError(this.#options.attempts.name, supported);
  }

  /** Asks a question, and repeats it while that may help and does not take too long. */
  async #ask(step: Step, revision: string, isRetry: boolean): Promise<{ answer: Answer; verdict: Verdict }> {
    const { attempts, clock, log, signal } = this.#options;
    let hasFailed = false;
    for (let busyTimes = 0; ; ) {
      const answer = await attempts.ask(step, revision);
      this.#note(step, answer);
      const verdict = this.#classify(step, answer, revision, isRetry);
      const mayWait = attempts.carrier === 'http' && this.#refusal === undefined;
      const pauseMs = mayWait ? pauseBefore(verdict, answer, { busyTimes, hasFailed }) : undefined;
      if (pauseMs === undefined) return { answer, verdict };
      if (verdict.kind === 'busy') {
        busyTimes += 1;
        // Logged, because the client gets no message during the pause.
        log.info({ status: answer.head?.status }, `the server is busy; asking again in ${pauseMs} ms`);
      } else {
        hasFailed = true;
      }
      await wait(clock, pauseMs, signal);
    }
  }

  #classify(step: Step, { outcome }: Answer, requested: string, isRetry: boolean): Verdict {
    if (outcome.kind === 'found') return FOUND;
    if (step !== 'discover') return classifyInitialize(outcome);
    return classifyProbe(outcome, { carrier: this.#options.attempts.carrier, requested, isRetry });
  }

  #note(step: Step, { summary, head, tookMs }: Answer): void {
    const request = QUESTIONS[step][this.#options.attempts.carrier];
    const attempt: Attempt = { request, saw: summary, status: head?.status, tookMs };
    this.#tried.push(attempt);
    this.#options.note?.(attempt);
    this.#options.log.debug({ request, status: head?.status, tookMs: Math.round(tookMs) }, `detection: ${summary}`);
  }
}

function moveAfter(step: Step, { kind }: Verdict, isFirst: boolean): Move {
  if (step === 'discover') return AFTER_DISCOVER[kind as ProbeVerdict['kind']];
  if (step === 'initialize') return AFTER_INITIALIZE[kind as InitializeVerdict['kind']];
  const move = AFTER_EVENT_STREAM[kind as StreamVerdict['kind']];
  if (move !== 'stop-if-first') return move;
  return isFirst ? 'stop' : 'next';
}

/** Returns the pause before the question is repeated. Undefined if it is not repeated. */
function pauseBefore(
  verdict: Verdict,
  { outcome }: Answer,
  { busyTimes, hasFailed }: { readonly busyTimes: number; readonly hasFailed: boolean },
): number | undefined {
  if (verdict.kind === 'busy') {
    if (busyTimes >= MAX_BUSY_REPEATS) return undefined;
    const pauseMs = verdict.retryAfterMs ?? BUSY_PAUSE_MS * 2 ** busyTimes;
    return pauseMs <= MAX_WAIT_MS ? pauseMs : undefined;
  }
  // A server that was silent for the whole time limit may still be working on the question.
  if (verdict.kind !== 'failing' || hasFailed || outcome.kind === 'silence') return undefined;
  return RETRY_PAUSE_MS;
}
