import type { Logger } from 'pino';
import type { Clock } from '../../../deps.ts';
import { assertNever, BridgeError } from '../../../errors.ts';
import { showUrl } from '../../../http/shown-url.ts';
import {
  classifyInitialize,
  classifyProbe,
  type InitializeVerdict,
  type ProbeContext,
  type ProbeOutcome,
  type ProbeVerdict,
} from '../../../mcp/classify/probe-answer.ts';
import { findCommonModern, LATEST_MODERN_REVISION, type ModernRevisionId } from '../../../mcp/vocabulary/revisions.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import { readRefusal } from '../../remote/refusal.ts';
import type { StreamAnswer } from '../ask/ask-event-stream.ts';
import type { HttpAnswer } from '../ask/ask-http.ts';
import { type Attempt, detectError, noCommonRevisionError } from './detect-errors.ts';
import { wait } from './wait.ts';

/** How the driver asks. Each may be called twice. Rejects only when the whole detection is given up. */
export interface HttpAttempts {
  /** `server/discover`, naming this revision. */
  discover(revision: string): Promise<HttpAnswer>;
  /** `initialize` by POST; a session that comes of it belongs to whoever implements this. */
  initialize(): Promise<HttpAnswer>;
  /** GET for the event stream that begins with `endpoint`. */
  eventStream(): Promise<StreamAnswer>;
}

export type DetectStep = keyof HttpAttempts;

/** A client of the same era is before us: its `initialize` tells most, and costs nothing. */
export const LEGACY_FIRST: readonly DetectStep[] = ['initialize', 'discover', 'eventStream'];
export const MODERN_FIRST: readonly DetectStep[] = ['discover', 'initialize', 'eventStream'];

export interface DetectHttpOptions {
  readonly url: URL;
  readonly attempts: HttpAttempts;
  /** One after the other, never side by side: a server may open a session for each. */
  readonly order: readonly DetectStep[];
  /** What `server/discover` names first. */
  readonly revision?: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export type HttpDetection =
  | { readonly kind: 'streamable-session'; readonly confidence: 'firm' | 'weak' }
  | { readonly kind: 'http-sse'; readonly confidence: 'firm' | 'weak' }
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId }
  /** Streamable HTTP, but `initialize` was turned down in so many words; they are the server's. */
  | { readonly kind: 'refused'; readonly error: RpcError };

/** Before a server in trouble is asked once more. */
export const RETRY_PAUSE_MS = 500;
/** What "try again later" means when no time is named; doubled each time. */
export const BUSY_PAUSE_MS = 1000;
/** A client waits meanwhile. Who names a longer time is told to the client. */
export const MAX_WAIT_MS = 10_000;
export const MAX_BUSY_REPEATS = 3;

/**
 * Finds out how to speak with the server at a URL.
 * @throws BridgeError ERR_UPSTREAM_AUTH, ERR_UPSTREAM_CONNECT, ERR_UPSTREAM_TIMEOUT, ERR_UPSTREAM_HTTP,
 *   ERR_UPSTREAM_REVISION, or ERR_UPSTREAM_DETECT, which lists what was tried; or the reason of the signal
 */
export function detectHttp(options: DetectHttpOptions): Promise<HttpDetection> {
  return new HttpDetector(options).run();
}

export type EraAnswer =
  | { readonly kind: 'modern'; readonly revision: ModernRevisionId }
  | {
      /** Not modern, as far as it tells. */
      readonly kind: 'legacy';
      /** `weak`: it was in trouble, or did not get what was sent. */
      readonly confidence: 'firm' | 'weak';
    };

/**
 * Asks a server whether it is modern, and nothing else.
 * @throws BridgeError as `detectHttp`, when it cannot be asked now
 */
export function askEra(options: Omit<DetectHttpOptions, 'order'>): Promise<EraAnswer> {
  return new HttpDetector({ ...options, order: [] }).askEra();
}

/** What a step leaves to be done: nothing, or the next one. */
type Outcome = HttpDetection | 'next';

class HttpDetector {
  readonly #options: DetectHttpOptions;
  readonly #tried: Attempt[] = [];
  #confidence: 'firm' | 'weak' = 'firm';
  /** The first step that failed without saying anything; unless another one shows more, this is the error. */
  #failure: BridgeError | undefined;
  #refusal: Extract<ProbeOutcome, { kind: 'error' }> | undefined;
  #isAnswering = true;

  constructor(options: DetectHttpOptions) {
    this.#options = options;
  }

  async run(): Promise<HttpDetection> {
    for (const step of this.#options.order) {
      const outcome = await this.#take(step);
      if (outcome !== 'next') return outcome;
    }
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#refusal !== undefined) return { kind: 'refused', error: this.#refusal.error };
    throw detectError(this.#options.url, this.#tried);
  }

  async askEra(): Promise<EraAnswer> {
    const outcome = await this.#discover(this.#options.revision ?? LATEST_MODERN_REVISION);
    if (outcome !== 'next' && outcome.kind === 'modern') return outcome;
    return { kind: 'legacy', confidence: this.#confidence };
  }

  async #take(step: DetectStep): Promise<Outcome> {
    switch (step) {
      case 'discover':
        return this.#discover(this.#options.revision ?? LATEST_MODERN_REVISION);
      case 'initialize':
        return this.#isAnswering ? this.#initialize() : 'next';
      case 'eventStream':
        return this.#mayStream ? this.#eventStream() : 'next';
      default:
        return assertNever(step);
    }
  }

  /**
   * A server that understood what it refused speaks another transport, and one that cannot be reached through its
   * gateway has nothing to show. But some answer 500 to a POST where they expect none.
   */
  get #mayStream(): boolean {
    return this.#refusal?.http?.status !== 200 && (this.#failure === undefined || this.#failure.data?.status === 500);
  }

  // ---- server/discover

  async #discover(requested: string, isRetry = false): Promise<Outcome> {
    const context: ProbeContext = { carrier: 'http', requested, isRetry };
    const { answer, verdict } = await this.#ask(
      'POST server/discover',
      () => this.#options.attempts.discover(requested),
      ({ outcome }) => classifyProbe(outcome, context),
    );
    switch (verdict.kind) {
      case 'modern':
        if (verdict.isDraft) this.#options.log.warn('the server speaks a draft of the modern era');
        return { kind: 'modern', revision: verdict.revision };
      case 'modern-retry':
        return this.#discover(verdict.revision, true);
      case 'headers-lost':
        return this.#discover(requested, true);
      case 'no-common-revision':
        throw noCommonRevisionError(showUrl(this.#options.url), verdict.supported);
      case 'legacy':
        if (verdict.confidence === 'weak') this.#confidence = 'weak';
        return 'next';
      case 'not-answering':
        this.#isAnswering = false;
        return 'next';
      default:
        return this.#withoutEvidence(verdict, answer);
    }
  }

  // ---- initialize

  async #initialize(): Promise<Outcome> {
    const { answer, verdict } = await this.#ask(
      'POST initialize',
      () => this.#options.attempts.initialize(),
      ({ outcome }) => classifyInitialize(outcome),
    );
    switch (verdict.kind) {
      case 'accepted':
        return { kind: 'streamable-session', confidence: this.#confidence };
      case 'modern': {
        const revision = findCommonModern(verdict.supported);
        if (revision !== undefined) return { kind: 'modern', revision };
        throw noCommonRevisionError(showUrl(this.#options.url), verdict.supported);
      }
      case 'refused':
        if (answer.outcome.kind === 'error') this.#refusal = answer.outcome;
        return 'next';
      case 'elsewhere':
        return 'next';
      default:
        return this.#withoutEvidence(verdict, answer);
    }
  }

  // ---- GET for an event stream

  async #eventStream(): Promise<Outcome> {
    const isFirst = this.#tried.length === 0;
    const { answer, verdict } = await this.#ask(
      'GET for an event stream',
      () => this.#options.attempts.eventStream(),
      ({ outcome }) => (outcome.kind === 'found' ? FOUND : classifyInitialize(outcome)),
    );
    switch (verdict.kind) {
      case 'found':
        return { kind: 'http-sse', confidence: this.#confidence };
      case 'unauthorized':
      case 'unreachable':
        throw errorOf(answer, this.#options.url);
      case 'busy':
      case 'failing':
        // Asked first because this is what it speaks: it is in trouble. Asked last: it never was this.
        if (isFirst) throw errorOf(answer, this.#options.url);
        return 'next';
      default:
        return 'next';
    }
  }

  // ---- what all have in common

  #withoutEvidence(
    verdict: Extract<ProbeVerdict | InitializeVerdict, { kind: 'unauthorized' | 'busy' | 'failing' | 'unreachable' }>,
    answer: HttpAnswer,
  ): Outcome {
    if (verdict.kind !== 'failing') {
      // What it said to `initialize` tells the client more than that it is busy now.
      if (verdict.kind === 'busy' && this.#refusal !== undefined) return 'next';
      throw errorOf(answer, this.#options.url);
    }
    this.#confidence = 'weak';
    if (this.#refusal === undefined) this.#failure ??= errorOf(answer, this.#options.url);
    return 'next';
  }

  /** Asks, and asks again as long as that may help and is not too long a wait. */
  async #ask<A extends HttpAnswer | StreamAnswer, V extends AnyVerdict>(
    request: string,
    ask: () => Promise<A>,
    classify: (answer: A) => V,
  ): Promise<{ answer: A; verdict: V }> {
    const { clock, log, signal } = this.#options;
    let hasFailed = false;
    for (let busyTimes = 0; ; ) {
      const answer = await ask();
      this.#note(request, answer);
      const verdict = classify(answer);
      const pauseMs = this.#refusal === undefined ? pauseBefore(verdict, answer, { busyTimes, hasFailed }) : undefined;
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

  #note(request: string, { words, head, tookMs }: HttpAnswer | StreamAnswer): void {
    this.#tried.push({ request, saw: words, status: head?.status, tookMs });
    this.#options.log.debug({ request, status: head?.status, tookMs: Math.round(tookMs) }, `detection: ${words}`);
  }
}

const FOUND = { kind: 'found' } as const;

type AnyVerdict = ProbeVerdict | InitializeVerdict | typeof FOUND;

/** How long to wait before the same question; undefined: it has been asked often enough. */
function pauseBefore(
  verdict: AnyVerdict,
  { outcome }: HttpAnswer | StreamAnswer,
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

/** The answer as an error for the client; the transport's own where there is one. */
function errorOf({ error, head }: HttpAnswer | StreamAnswer, url: URL): BridgeError {
  if (error !== undefined) return error;
  if (head !== undefined) return readRefusal(url, head, NO_BODY).error;
  return new BridgeError('ERR_UPSTREAM_CLOSED', `The server at ${showUrl(url)} did not answer.`);
}

const NO_BODY = Buffer.alloc(0);
