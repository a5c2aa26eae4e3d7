import type { Protocol, RemoteConfig } from '../../../config.ts';
import type { Deps } from '../../../deps.ts';
import { BridgeError, toBridgeError } from '../../../errors.ts';
import type { HttpClient } from '../../../http/client/client.ts';
import { SessionCookies } from '../../../http/client/cookies.ts';
import { showUrl } from '../../../http/shown-url.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import type { ModernRevisionId } from '../../../mcp/vocabulary/revisions.ts';
import type { UpstreamDialer } from '../../../relay/ports.ts';
import { Deadline } from '../attempts/deadline.ts';
import { type DetectStep, detectHttp, type HttpDetection, LEGACY_FIRST } from '../attempts/detect-http.ts';
import { PROBE_TIMEOUT_MS } from '../attempts/detect-stdio.ts';
import { Trial } from '../attempts/trial.ts';
import { TrialAttempts } from '../attempts/trial-attempts.ts';
import { untilAborted } from '../attempts/wait.ts';
import type { FirstFailures } from '../first-failures.ts';
import type { Request } from '../found-link.ts';
import type { KeyOf } from '../server-key.ts';
import type { Verdict, VerdictCache } from '../verdict-cache.ts';

/** The way on for a legacy client whose server turns out to be modern. */
export interface ModernTurn {
  /** Where its session continues; undefined: nowhere, it is told so. */
  readonly dialer: UpstreamDialer | undefined;
  /** Called each time a server shows it, with its key. */
  found(key: string, revision: ModernRevisionId): void;
}

export interface LinkFinderOptions {
  readonly url: URL;
  readonly protocol: Protocol;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  readonly streamable: UpstreamDialer;
  readonly httpSse: UpstreamDialer;
  /** Undefined: a modern server is of no use to anybody here. */
  readonly modern: ModernTurn | undefined;
  readonly clientInfo: Implementation;
  readonly maxMessageBytes: number;
  /** How the server takes an `initialize`. */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly failures: FirstFailures;
  readonly deps: Deps;
}

/** The detection of somebody else came to nothing that would hold for others. */
class NothingFound extends Error {}

/** Finds the way to a server for one client after the other, and remembers which it was. */
export class LinkFinder {
  readonly #options: LinkFinderOptions;
  readonly #steps: readonly DetectStep[];
  /**
   * It has been found once. Until then the address may be wrong, and `failures` is told. Who loses a server later says so.
   */
  #wasThere = false;

  constructor(options: LinkFinderOptions) {
    const { protocol, remote } = options;
    this.#options = options;
    this.#steps = LEGACY_FIRST.filter(
      (step) =>
        !(step === 'discover' && protocol === 'legacy') &&
        !(step === 'eventStream' && remote.transport === 'streamable-http'),
    );
  }

  /**
   * A client's `initialize` is the first attempt, so a server that takes it is asked nothing else. Several clients that
   * come before anything is known wait for the first of them.
   */
  readonly find = async (initialize: Request, signal: AbortSignal): Promise<Trial> => {
    const { verdicts, keyOf } = this.#options;
    const key = keyOf(initialize.exchange?.lane.headers);
    for (;;) {
      signal.throwIfAborted();
      const known = verdicts.find(key);
      if (known !== undefined) return this.#follow(key, known, initialize, signal);
      let found: Trial | undefined;
      try {
        await verdicts.resolve(key, async () => {
          const detection = await this.#tryAll(key, initialize, signal);
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
    const modern = known.kind === 'modern' ? await this.#tryModern(initialize, signal) : undefined;
    if (modern !== undefined) return modern;
    const steps = known.kind === 'http-sse' ? eventStreamFirst(this.#steps) : this.#steps;
    const detection = await this.#detect(key, initialize, signal, steps);
    if (detection.kind !== 'refused' && detection.kind !== known.kind) {
      verdicts.contradict(key, known);
      verdicts.store(key, toVerdict(detection));
    }
    return detection.trial;
  }

  /** Undefined: the server does not answer as a modern one any more, whatever that means. */
  async #tryModern(initialize: Request, signal: AbortSignal): Promise<Trial | undefined> {
    const { url, http, modern } = this.#options;
    if (modern?.dialer === undefined) return undefined;
    const deadline = new Deadline(http, showUrl(url), signal);
    const trial = new Trial(modern.dialer, initialize);
    try {
      const end = await untilAborted(trial.ended, deadline.signal);
      if (end.kind === 'answered' && end.frame.kind === 'result') return trial;
      trial.drop(NOT_MODERN);
      return undefined;
    } catch (thrown) {
      trial.drop(NOT_MODERN);
      throw thrown;
    } finally {
      deadline.clear();
    }
  }

  /** Whoever waits for this is not to suffer from the client that happened to be first. */
  async #tryAll(key: string, initialize: Request, signal: AbortSignal): Promise<Found> {
    try {
      return await this.#detect(key, initialize, signal, this.#steps);
    } catch (thrown) {
      throw signal.aborted ? new NothingFound() : thrown;
    }
  }

  async #detect(key: string, initialize: Request, signal: AbortSignal, order: readonly DetectStep[]): Promise<Found> {
    const { url, http, deps, failures, streamable, httpSse, clientInfo, maxMessageBytes } = this.#options;
    const deadline = new Deadline(http, showUrl(url), signal);
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
      this.#wasThere = true;
      log.debug({ transport: detection.kind }, 'found the server');
      if (detection.kind === 'modern') {
        this.#options.modern?.found(key, detection.revision);
        return { ...detection, trial: this.#turnModern(initialize, detection.revision) };
      }
      const trial = attempts.take();
      if (trial === undefined) throw new Error('a transport was found without a link');
      return { ...detection, trial };
    } catch (thrown) {
      if (!this.#wasThere && !signal.aborted) failures.tell(toBridgeError(thrown));
      throw thrown;
    } finally {
      deadline.clear();
      attempts.close();
    }
  }

  /** The server has not taken the client's `initialize`; who translates answers it. */
  #turnModern(initialize: Request, revision: ModernRevisionId): Trial {
    const { modern, url } = this.#options;
    if (modern?.dialer === undefined) throw modernOnlyError(url, revision);
    return new Trial(modern.dialer, initialize);
  }
}

type Found = HttpDetection & { readonly trial: Trial };

const eventStreamFirst = (steps: readonly DetectStep[]): readonly DetectStep[] => [
  ...new Set<DetectStep>(['eventStream', ...steps]),
];

function toVerdict(detection: Exclude<Found, { kind: 'refused' }>): Verdict {
  return detection.kind === 'modern'
    ? { kind: 'modern', revision: detection.revision }
    : { kind: detection.kind, confidence: detection.confidence };
}

/** A client of the legacy era in front of a server without it. */
function modernOnlyError(url: URL, revision: string): BridgeError {
  const message =
    `The server at ${showUrl(url)} speaks only MCP ${revision} and later, without a handshake, but was to be spoken to with one. ` +
    'Try again, without --protocol legacy and --transport if they are given.';
  return new BridgeError('ERR_UPSTREAM_REVISION', message, { data: { supported: [revision] } });
}

const NOT_MODERN = new BridgeError('ERR_SESSION_CLOSED', 'The server is not what it was.');
