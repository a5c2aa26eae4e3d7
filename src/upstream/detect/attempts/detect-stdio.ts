import type { Logger } from 'pino';
import type { Clock } from '../../../deps.ts';
import { assertNever, BridgeError, toBridgeError } from '../../../errors.ts';
import { classifyInitialize, classifyProbe, type ProbeVerdict } from '../../../mcp/classify/probe-answer.ts';
import { createDiscoverRequest, type Discovery, parseDiscovery } from '../../../mcp/vocabulary/discover.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { DISCOVER, INITIALIZE } from '../../../mcp/vocabulary/methods.ts';
import {
  findCommonModern,
  LATEST_LEGACY_REVISION,
  LATEST_MODERN_REVISION,
  type ModernRevisionId,
} from '../../../mcp/vocabulary/revisions.ts';
import type { UpstreamDialer } from '../../../relay/ports.ts';
import { type LinkAnswer, LinkClient } from '../ask/link-client.ts';
import type { VerdictCache } from '../verdict-cache.ts';
import { type Attempt, noCommonRevisionError } from './detect-errors.ts';

/** Servers that a package runner downloads first take seconds to say their first word. */
export const PROBE_TIMEOUT_MS = 10_000;
/** For `initialize`, whose answer is waited for in any case. */
export const HANDSHAKE_TIMEOUT_MS = 60_000;
/** Two answers of one process hardly ever come further apart; the one to the older question decides then. */
export const LATE_ANSWER_MS = 1000;

export interface DetectStdioOptions {
  readonly dialer: UpstreamDialer;
  readonly clientInfo: Implementation;
  /** Declared in `initialize`; `server/discover` declares none. */
  readonly capabilities?: object;
  readonly clock: Clock;
  readonly log: Logger;
  /** Remembers which servers must not be probed, by `key`: the command with everything that makes it another server. */
  readonly verdicts: VerdictCache;
  readonly key: string;
  /** What `server/discover` names first. */
  readonly revision?: string;
  /** Hears of each attempt when its outcome is known. */
  readonly note?: (attempt: Attempt) => void;
  readonly probeTimeoutMs?: number;
  readonly handshakeTimeoutMs?: number;
}

/** A server process whose era is known. Its connection belongs to the caller, who closes it. */
export type StdioDetection = {
  readonly connection: LinkClient;
} & (
  | {
      readonly era: 'legacy';
      /** The InitializeResult; `notifications/initialized` has not been sent. */
      readonly handshake: unknown;
    }
  | {
      readonly era: 'modern';
      readonly revision: ModernRevisionId;
      /** Undefined when the server showed its era by an error. */
      readonly discovery: Discovery | undefined;
    }
);

/**
 * Starts a server and finds out its era: probes with `server/discover` and goes on to `initialize` in the same process
 * unless the answer is modern. [spec 2026-07-28 transports/stdio#backward-compatibility]
 * @throws BridgeError ERR_UPSTREAM_SPAWN, ERR_UPSTREAM_EXITED, ERR_UPSTREAM_REVISION, or ERR_UPSTREAM_DETECT with what
 *   was tried; nothing is left running then
 */
export async function detectStdio(options: DetectStdioOptions): Promise<StdioDetection> {
  const detector = new StdioDetector(options);
  try {
    return await detector.run();
  } catch (thrown) {
    await detector.close(toBridgeError(thrown));
    throw thrown;
  }
}

class StdioDetector {
  readonly #options: DetectStdioOptions;
  readonly #attempts: Attempt[] = [];
  #client: LinkClient;
  /** The process that runs now got a message that a server may exit at. */
  #wasProbed = false;
  /** The outcome is known; answers that come later are nobody's business. */
  #isSettled = false;

  constructor(options: DetectStdioOptions) {
    this.#options = options;
    this.#client = this.#open();
  }

  #open(): LinkClient {
    return new LinkClient(this.#options.dialer, this.#options.clock);
  }

  /** Resolves when nothing is left of the server. */
  async close(reason: BridgeError): Promise<void> {
    this.#client.close(reason);
    await this.#client.gone;
  }

  async run(): Promise<StdioDetection> {
    try {
      return await this.#run();
    } finally {
      this.#isSettled = true;
    }
  }

  async #run(): Promise<StdioDetection> {
    const known = this.#options.verdicts.find(this.#options.key);
    if (known?.kind === 'stdio') return this.#initialize(undefined);
    const { probeTimeoutMs = PROBE_TIMEOUT_MS, revision = LATEST_MODERN_REVISION } = this.#options;
    const probe = this.#discover(revision, probeTimeoutMs, false);
    const seen = await probe.inTime;
    if (seen === undefined) return this.#initialize(probe.ever);
    switch (seen.verdict.kind) {
      case 'modern':
      case 'modern-retry':
        return this.#modern(seen, seen.verdict);
      case 'no-common-revision':
        throw noCommonRevisionError(this.#options.dialer.name, seen.verdict.supported);
      case 'legacy':
        if (seen.verdict.respawn) await this.#respawn(seen.answer);
        return this.#initialize(undefined);
      case 'headers-lost':
      case 'not-answering':
      case 'unauthorized':
      case 'busy':
      case 'failing':
      case 'unreachable':
        throw seen.answer.error ?? this.#failure();
      default:
        return assertNever(seen.verdict);
    }
  }

  /**
   * A server that exits at a message it does not know gets a second process, and no second such message. Not while
   * anything is left of the first one, which may have what only one can have.
   */
  async #respawn({ error }: LinkAnswer): Promise<void> {
    this.#options.log.debug({ code: error?.code }, 'the server exited at the probe; it is started again without one');
    this.#wasProbed = false;
    await this.#client.gone;
    this.#client = this.#open();
  }

  // ---- server/discover

  #discover(revision: string, timeoutMs: number, isRetry: boolean): Probe {
    const { clientInfo, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, clock } = this.#options;
    this.#wasProbed = true;
    const id = this.#client.takeId();
    const request = createDiscoverRequest({ id, revision, clientInfo });
    const ever = this.#client.ask(request, timeoutMs + handshakeTimeoutMs).then((answer): Seen => {
      if (!this.#isSettled) this.#note(DISCOVER, answer);
      const context = { carrier: 'stdio', requested: revision, isRetry } as const;
      return { answer, verdict: classifyProbe(answer.outcome, context) };
    });
    const timedOut = new Promise<undefined>((resolve) => {
      const cancel = clock.after(timeoutMs, () => {
        this.#note(DISCOVER, { words: `no answer within ${timeoutMs} ms`, tookMs: timeoutMs });
        resolve(undefined);
      });
      void ever.then(cancel);
    });
    return { ever, inTime: Promise.race([ever, timedOut]) };
  }

  async #modern(seen: Seen, verdict: ModernVerdict): Promise<StdioDetection> {
    const { dialer, log, probeTimeoutMs = PROBE_TIMEOUT_MS, verdicts, key } = this.#options;
    if (verdict.kind === 'modern-retry') {
      const again = await this.#discover(verdict.revision, probeTimeoutMs, true).inTime;
      if (again?.verdict.kind === 'modern') return this.#modern(again, again.verdict);
      if (again?.verdict.kind === 'no-common-revision') {
        throw noCommonRevisionError(dialer.name, again.verdict.supported);
      }
      throw again?.answer.error ?? this.#failure();
    }
    if (verdict.isDraft) log.warn('the server speaks a draft of the modern era');
    verdicts.store(key, { kind: 'modern', revision: verdict.revision });
    const { outcome } = seen.answer;
    return {
      era: 'modern',
      revision: verdict.revision,
      discovery: outcome.kind === 'result' ? parseDiscovery(outcome.result) : undefined,
      connection: this.#client,
    };
  }

  // ---- initialize

  /**
   * From here on its answer decides for this process: a server of both eras that took it serves the legacy one, even if
   * the answer to the probe comes after all.
   * @param probe an unanswered one
   */
  async #initialize(probe: Promise<Seen> | undefined): Promise<StdioDetection> {
    const { clientInfo, capabilities = {}, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, verdicts, key } = this.#options;
    const protocolVersion = LATEST_LEGACY_REVISION.id;
    const params = { protocolVersion, capabilities, clientInfo };
    const answer = await this.#client.request(INITIALIZE, params, handshakeTimeoutMs);
    this.#note(INITIALIZE, answer);
    const verdict = classifyInitialize(answer.outcome);
    if (verdict.kind === 'accepted' && answer.outcome.kind === 'result') {
      verdicts.store(key, { kind: 'stdio', confidence: 'firm' });
      const handshake = answer.outcome.result;
      return { era: 'legacy', handshake, connection: this.#client };
    }
    if (answer.outcome.kind === 'exited' && this.#wasProbed) {
      await this.#respawn(answer);
      return this.#initialize(undefined);
    }
    const late = probe === undefined ? undefined : await this.#within(probe, LATE_ANSWER_MS);
    if (late?.verdict.kind === 'modern' || late?.verdict.kind === 'modern-retry') {
      return this.#modern(late, late.verdict);
    }
    if (verdict.kind === 'modern') return this.#fallForward(verdict.supported);
    throw answer.error ?? this.#failure();
  }

  /** It did not answer the probe in time, but says itself that it is modern. */
  async #fallForward(supported: readonly string[]): Promise<StdioDetection> {
    const { dialer, probeTimeoutMs = PROBE_TIMEOUT_MS } = this.#options;
    const revision = findCommonModern(supported);
    if (revision === undefined) throw noCommonRevisionError(dialer.name, supported);
    const seen = await this.#discover(revision, probeTimeoutMs, true).inTime;
    if (seen?.verdict.kind === 'modern') return this.#modern(seen, seen.verdict);
    throw seen?.answer.error ?? this.#failure();
  }

  #within<Value>(promise: Promise<Value>, limitMs: number): Promise<Value | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(limitMs, () => resolve(undefined));
      void promise.then((value) => {
        cancel();
        resolve(value);
      });
    });
  }

  // ---- what was tried

  #note(request: string, { words, tookMs }: Pick<LinkAnswer, 'words' | 'tookMs'>): void {
    const attempt: Attempt = { request, saw: words, status: undefined, tookMs };
    this.#attempts.push(attempt);
    this.#options.note?.(attempt);
    this.#options.log.debug({ request, tookMs: Math.round(tookMs) }, `detection: ${words}`);
  }

  #failure(): BridgeError {
    const { name } = this.#options.dialer;
    const tried = this.#attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
    const message = `Server "${name}" runs, but does not speak MCP of any era known here. Tried: ${tried}.`;
    const attempts = this.#attempts.map(({ request, saw }) => ({ request, saw }));
    return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts } });
  }
}

interface Seen {
  readonly answer: LinkAnswer;
  readonly verdict: ProbeVerdict;
}

interface Probe {
  /** The answer, if it comes within the time limit of the probe. */
  readonly inTime: Promise<Seen | undefined>;
  /** The answer, however late. */
  readonly ever: Promise<Seen>;
}

type ModernVerdict = Extract<ProbeVerdict, { kind: 'modern' | 'modern-retry' }>;
