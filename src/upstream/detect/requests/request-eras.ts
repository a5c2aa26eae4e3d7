import type { RemoteConfig } from '../../../config.ts';
import type { Deps } from '../../../deps.ts';
import { toBridgeError } from '../../../errors.ts';
import type { HttpClient } from '../../../http/client/client.ts';
import { SessionCookies } from '../../../http/client/cookies.ts';
import { showUrl } from '../../../http/shown-url.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import type { Readiness } from '../../../relay/ports.ts';
import { isOutOfReach, Reachability } from '../../remote/reachability.ts';
import { Deadline } from '../attempts/deadline.ts';
import { askEra } from '../attempts/detect-http.ts';
import { PROBE_TIMEOUT_MS } from '../attempts/detect-stdio.ts';
import { OwnAttempts } from '../attempts/own-attempts.ts';
import { untilAborted } from '../attempts/wait.ts';
import type { FirstFailures } from '../first-failures.ts';
import type { KeyOf } from '../server-key.ts';
import type { Verdict, VerdictCache } from '../verdict-cache.ts';

type Forwarded = Readonly<Record<string, string>> | undefined;
type LegacyVerdict = Exclude<Verdict, { kind: 'modern' }>;

/** How a server takes the requests of modern clients. */
export type RequestEra =
  | { readonly kind: 'modern' }
  | {
      readonly kind: 'legacy';
      /** It answered as a legacy server does. */
      confirm(): void;
      /** It did not. */
      refute(): void;
    };

export interface RequestErasOptions {
  readonly url: URL;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  readonly clientInfo: Implementation;
  readonly maxMessageBytes: number;
  /** Is the server modern? */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly failures: FirstFailures;
  readonly deps: Deps;
}

/** Finds out whether a server at a URL is modern, with one `server/discover` for all who want to know. */
export class RequestEras {
  readonly #options: RequestErasOptions;
  readonly #reachability: Reachability;
  readonly #confirmed = new WeakSet<Verdict>();
  /** It has answered once. Until then the address may be wrong, and `failures` is told. */
  #wasThere = false;

  constructor(options: RequestErasOptions) {
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  /** What is known for certain of the server as all clients see it, so that nobody has to wait. */
  get known(): Verdict['kind'] | undefined {
    const { remote, verdicts, keyOf } = this.#options;
    if (remote.forwardHeaders.length > 0) return undefined;
    const verdict = verdicts.find(keyOf(undefined));
    return verdict?.kind === 'modern' || (verdict && this.#confirmed.has(verdict)) ? verdict.kind : undefined;
  }

  /** Rejects with a BridgeError when the server cannot be asked now, or with the reason of the signal. */
  async find(forwarded: Forwarded, signal: AbortSignal): Promise<RequestEra> {
    const { verdicts, keyOf } = this.#options;
    const key = keyOf(forwarded);
    // Whoever waits for this is not to suffer when the client leaves that happened to be first.
    const verdict = await untilAborted(
      verdicts.resolve(key, () => this.#ask(forwarded)),
      signal,
    );
    return verdict.kind === 'modern' ? verdict : this.#legacy(key, verdict);
  }

  /**
   * A server that did not answer as a modern one may be in trouble, or not there yet: it counts as legacy until it turns
   * out that it does not answer as that, either.
   */
  #legacy(key: string, verdict: LegacyVerdict): RequestEra {
    return {
      kind: 'legacy',
      confirm: () => void this.#confirmed.add(verdict),
      refute: () => {
        if (!this.#confirmed.has(verdict)) this.#options.verdicts.contradict(key, verdict);
      },
    };
  }

  async #ask(forwarded: Forwarded): Promise<Verdict> {
    const { failures, url, http, clientInfo, maxMessageBytes, deps } = this.#options;
    const { clock, log } = deps;
    const deadline = new Deadline(http, showUrl(url));
    const { signal } = deadline;
    const target = { http, url, cookies: new SessionCookies(), forwarded, maxMessageBytes };
    const attempts = new OwnAttempts({ target, clientInfo, timeoutMs: PROBE_TIMEOUT_MS, signal });
    try {
      const answer = await askEra({ url, attempts, clock, log, signal });
      this.#reachability.note(undefined);
      this.#wasThere = true;
      return answer;
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (isOutOfReach(error)) this.#reachability.note(error);
      if (!this.#wasThere) failures.tell(error);
      throw error;
    } finally {
      deadline.clear();
    }
  }
}
