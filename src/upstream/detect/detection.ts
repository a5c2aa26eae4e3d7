/**
 * How it is found out what a server speaks: one question after the other, never side by side, for a server may open a
 * session or do its work for each; only a POST that stays without an answer gets a GET beside it, as servers of HTTP+SSE
 * may leave it so. What an answer says is decided in mcp/classify/probe-answer.ts, what is done then in
 * the tables below. [spec 2026-07-28 basic/transports] backward compatibility
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
 * - `discover`: `server/discover`, which no legacy server carries out.
 * - `initialize`: the handshake of the legacy era, over HTTP by POST.
 * - `eventStream`: GET for the event stream that begins with `endpoint`, as HTTP+SSE does.
 */
export type Step = 'discover' | 'initialize' | 'eventStream';

/** A client of that era is before us: its `initialize` tells most, and costs nothing. */
export const LEGACY_FIRST: readonly Step[] = ['initialize', 'discover', 'eventStream'];
export const MODERN_FIRST: readonly Step[] = ['discover', 'initialize', 'eventStream'];

/** Puts the questions to one server. */
export interface Attempts {
  readonly carrier: 'pipe' | 'http';
  /** The server, as it may be shown. */
  readonly name: string;
  /**
   * Asks, and may be called twice for one step. Rejects only when the whole detection is given up.
   * @param revision what `server/discover` names
   */
  ask(step: Step, revision: string): Promise<Answer>;
  /** An answer that is none, as the error that a client is told; undefined: it says no more than that. */
  errorOf(answer: Answer): BridgeError | undefined;
  /** Nothing that was tried has led anywhere. */
  nothingFound(tried: readonly Attempt[]): BridgeError;
}

export interface DetectOptions {
  readonly attempts: Attempts;
  readonly order: readonly Step[];
  /**
   * `session`: how a session is opened there. `era`: whether the server is modern; it is asked no more than that takes.
   */
  readonly goal: 'session' | 'era';
  /** What `server/discover` names first. */
  readonly revision?: string;
  /** Hears of each attempt when its outcome is known. */
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
       * What the server took: `initialize` or `eventStream`. Where only its era was asked, `eventStream`: what it would take;
       * `discover`: that is not known.
       */
      readonly by: Step;
      /** `weak`: it was in trouble, or did not get what was sent. */
      readonly confidence: 'firm' | 'weak';
      readonly answer: Answer;
    }
  /** `initialize` was understood and turned down, and nothing else led anywhere. The words are the server's. */
  | { readonly kind: 'refused'; readonly error: RpcError };

/** Before a server in trouble is asked once more. */
export const RETRY_PAUSE_MS = 500;
/** What "try again later" means when no time is named; doubled each time. */
export const BUSY_PAUSE_MS = 1000;
/** A client waits meanwhile. Who names a longer time is told to the client. */
export const MAX_WAIT_MS = 10_000;
export const MAX_BUSY_REPEATS = 3;

/**
 * What follows an answer.
 * - `found`: the server speaks this.
 * - `repeat`: the same question again, as the verdict wants it, once.
 * - `next`: the next step. `no-posts`: so it is, but for `initialize`, which would be taken without an answer, too.
 * - `event-stream`: the event stream, and no other step.
 * - `refused`: the next step, and if that is all, these words are the answer.
 * - `trouble`: after a second try the next step, but no verdict is firm any more.
 * - `stop`: no other question would be answered better.
 * - `unknown-revision`: it is modern, but nothing is spoken here that it speaks.
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

/** Where the stream was asked for last and there is none, the server never was this; asked first, it is in trouble. */
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
 * Finds out what a server speaks.
 * @throws BridgeError of the transport, ERR_UPSTREAM_REVISION, or ERR_UPSTREAM_DETECT, which lists what was tried; or
 *   the reason of the signal
 */
export function detect(options: DetectOptions): Promise<Detection> {
  return new Detector(options).run();
}

/** Outcomes of `server/discover` that may have another cause than the question. */
const LEAVES_OPEN: ReadonlySet<Answer['outcome']['kind'] | undefined> = new Set(['silence', 'exited', 'lost'] as const);

/** Nothing is known yet. */
interface Open {
  readonly kind: 'open';
  readonly answer: Answer;
}

class Detector {
  readonly #options: DetectOptions;
  readonly #tried: Attempt[] = [];
  #confidence: 'firm' | 'weak' = 'firm';
  /** The first step that failed without saying anything; unless another one shows more, this is the error. */
  #failure: BridgeError | undefined;
  #refusal: Extract<ProbeOutcome, { kind: 'error' }> | undefined;
  /** It takes posts without answering them. */
  #isMute = false;
  /** It has shown the event stream of HTTP+SSE, so nothing else is worth asking. */
  #isHttpSse = false;
  /** What came of `server/discover`; it is asked again at the end only if that was nothing. */
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
   * A server that was silent may still be starting, and one that exited or hung up may have done so for another reason than
   * what it was asked. Over HTTP a modern server has to answer. [spec 2026-07-28 basic/transports#stdio]
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
        // Who understood what it refused speaks another transport, and who cannot be reached through a gateway has
        // nothing to show. But some answer 500 to a POST where they expect none.
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
        // Found beside a POST, which may have been answered later.
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
        // What it said to `initialize` tells the client more than that it is busy now.
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
    // A process or connection that has failed is not asked something else: it is gone.
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

  /** Asks, and asks again as long as that may help and is not too long a wait. */
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
        // A client waits that long and is told nothing.
        log.info({ status: answer.head?.status }, `the server is busy; it is asked again in ${pauseMs} ms`);
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

/** How long to wait before the same question; undefined: it has been asked often enough. */
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
  // Who was silent for the whole time limit may be at work on it still.
  if (verdict.kind !== 'failing' || hasFailed || outcome.kind === 'silence') return undefined;
  return RETRY_PAUSE_MS;
}
