import { createHash } from 'node:crypto';
import type { RemoteConfig } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client.ts';
import { SessionCookies } from '../../http/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Implementation } from '../../mcp/meta.ts';
import type { UpstreamDialer } from '../../relay/ports.ts';
import { type DetectStep, detectHttp, type HttpDetection, LEGACY_FIRST } from './detect-http.ts';
import { PROBE_TIMEOUT_MS } from './detect-stdio.ts';
import type { FindLink } from './detecting-link.ts';
import type { Request, Trial } from './trial.ts';
import { TrialAttempts } from './trial-attempts.ts';
import type { Verdict, VerdictCache } from './verdict-cache.ts';

/** From the client's `initialize` to the server's answer, all attempts and waits together. */
export const DECISION_TIMEOUT_MS = 60_000;

export interface LinkFinderOptions {
  readonly url: URL;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  readonly streamable: UpstreamDialer;
  readonly httpSse: UpstreamDialer;
  readonly clientInfo: Implementation;
  readonly maxMessageBytes: number;
  readonly verdicts: VerdictCache;
  readonly deps: Deps;
}

/** The detection of somebody else came to nothing that would hold for others. */
class NothingFound extends Error {}

/** Finds the way to a server for one client after the other, and remembers which it was. */
export class LinkFinder {
  readonly #options: LinkFinderOptions;
  readonly #steps: readonly DetectStep[];
  readonly #baseKey: string;

  constructor(options: LinkFinderOptions) {
    const { url, remote } = options;
    this.#options = options;
    this.#steps = LEGACY_FIRST.filter(
      (step) =>
        !(step === 'discover' && remote.protocol === 'legacy') &&
        !(step === 'eventStream' && remote.transport === 'streamable-http'),
    );
    this.#baseKey = `${url.origin}${url.pathname} ${digest([...remote.headers], remote.bearerTokenFile)}`;
  }

  /**
   * A client's `initialize` is the first attempt, so a server that takes it is asked nothing else. Several clients that
   * come before anything is known wait for the first of them.
   */
  readonly find: FindLink = async (initialize, signal) => {
    const { verdicts } = this.#options;
    const { headers } = initialize.exchange?.lane ?? {};
    const key = headers === undefined ? this.#baseKey : `${this.#baseKey} ${digest(Object.entries(headers))}`;
    for (;;) {
      signal.throwIfAborted();
      const known = verdicts.find(key);
      if (known !== undefined) return this.#follow(key, known, initialize, signal);
      let found: Trial | undefined;
      try {
        await verdicts.resolve(key, async () => {
          const detection = await this.#tryAll(initialize, signal);
          found = detection.trial;
          if (detection.kind === 'refused') throw new NothingFound();
          return toVerdict(detection);
        });
      } catch (thrown) {
        if (!(thrown instanceof NothingFound)) throw thrown;
      }
      if (found !== undefined) return found;
    }
  };

  /** What is known comes first; everything else follows all the same, for servers change. */
  async #follow(key: string, known: Verdict, initialize: Request, signal: AbortSignal): Promise<Trial> {
    const { verdicts } = this.#options;
    const steps = known.kind === 'http-sse' ? eventStreamFirst(this.#steps) : this.#steps;
    const detection = await this.#detect(initialize, signal, steps);
    if (detection.kind !== 'refused' && detection.kind !== known.kind) {
      verdicts.contradict(key, known);
      verdicts.store(key, toVerdict(detection));
    }
    return detection.trial;
  }

  /** Whoever waits for this is not to suffer from the client that happened to be first. */
  async #tryAll(initialize: Request, signal: AbortSignal): Promise<Found> {
    try {
      return await this.#detect(initialize, signal, this.#steps);
    } catch (thrown) {
      throw signal.aborted ? new NothingFound() : thrown;
    }
  }

  async #detect(initialize: Request, signal: AbortSignal, order: readonly DetectStep[]): Promise<Found> {
    const { url, http, deps, streamable, httpSse, clientInfo, maxMessageBytes } = this.#options;
    const deadline = new Deadline(deps, url, signal);
    const cookies = new SessionCookies();
    const forwarded = initialize.exchange?.lane.headers;
    const attempts = new TrialAttempts({
      target: { http, url, cookies, forwarded, maxMessageBytes },
      clientInfo,
      timeoutMs: PROBE_TIMEOUT_MS,
      signal: deadline.signal,
      request: initialize,
      streamable,
      httpSse,
    });
    try {
      const { clock, log } = deps;
      const detection = await detectHttp({ url, attempts, order, clock, log, signal: deadline.signal });
      if (detection.kind === 'modern') throw modernOnlyError(url, detection.revision);
      const trial = attempts.take();
      if (trial === undefined) throw new Error('a transport was found without a link');
      log.debug({ transport: detection.kind }, 'found the server');
      return { ...detection, trial };
    } finally {
      deadline.clear();
      attempts.close();
    }
  }
}

type Found = Exclude<HttpDetection, { kind: 'modern' }> & { readonly trial: Trial };

const eventStreamFirst = (steps: readonly DetectStep[]): readonly DetectStep[] => [
  ...new Set<DetectStep>(['eventStream', ...steps]),
];

function toVerdict(detection: Exclude<Found, { kind: 'refused' }>): Verdict {
  return { kind: detection.kind, confidence: detection.confidence };
}

/** A client of the legacy era in front of a server without it. */
function modernOnlyError(url: URL, revision: string): BridgeError {
  const message =
    `The server at ${showUrl(url)} speaks only MCP ${revision} and later, without a handshake; this client began with one. ` +
    'This version of mcp-portage connects legacy clients to legacy servers; connect a client that speaks that revision to the server itself.';
  return new BridgeError('ERR_UPSTREAM_REVISION', message, { data: { supported: [revision] } });
}

/** The signal of the client, and a time limit. */
class Deadline {
  readonly signal: AbortSignal;
  readonly #cancel: () => void;

  constructor({ clock }: Deps, url: URL, signal: AbortSignal) {
    const controller = new AbortController();
    this.#cancel = clock.after(DECISION_TIMEOUT_MS, () => {
      const message = `The server at ${showUrl(url)} did not answer initialize within ${DECISION_TIMEOUT_MS} ms.`;
      const data = { phase: 'detection', timeoutMs: DECISION_TIMEOUT_MS };
      controller.abort(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
    });
    this.signal = AbortSignal.any([signal, controller.signal]);
  }

  clear(): void {
    this.#cancel();
  }
}

/** Tells credentials apart without keeping them. */
function digest(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
