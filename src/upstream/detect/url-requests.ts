import type { RemoteConfig } from '../../config/remote.ts';
import type { UrlTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, toBridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { CallContext, CallDialer, Readiness, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import { isOutOfReach, Reachability } from '../remote/remote-environment.ts';
import { PROBE_TIMEOUT_MS } from './connection-attempts.ts';
import { Deadline, untilAborted } from './deadline.ts';
import { DetectingLinks, type FoundLink, type Request } from './detecting-link.ts';
import { detect } from './detection.ts';
import type { FirstFailures } from './first-failures.ts';
import type { JoinedDialers } from './joined-dialers.ts';
import { OwnAttempts } from './url-attempts.ts';
import type { KeyOf, Verdict, VerdictCache } from './verdict-cache.ts';

type Forwarded = Readonly<Record<string, string>> | undefined;

export interface UrlRequestsOptions {
  readonly target: UrlTarget;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  readonly clientInfo: Implementation;
  readonly maxMessageBytes: number;
  readonly joined: Pick<JoinedDialers, 'modern' | 'modernToLegacy'>;
  /** Is the server modern? */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly failures: FirstFailures;
  readonly deps: Deps;
}

/**
 * Links for the requests of modern clients to a server at a URL, whichever era it is of: one `server/discover` tells for
 * all who want to know. A server that did not answer as a modern one counts as legacy until no session can be opened.
 */
export class UrlRequests {
  readonly #options: UrlRequestsOptions;
  readonly #reachability: Reachability;
  readonly #links = new DetectingLinks();
  /** It has answered once. Until then the address may be wrong, and `failures` is told. */
  #wasThere = false;

  constructor(options: UrlRequestsOptions) {
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  dial(listener: ServerListener, context: CallContext): UpstreamLink {
    const { remote, verdicts, keyOf } = this.#options;
    // Another caller may get another server, and who it is comes with the request.
    const known = remote.forwardHeaders.length > 0 ? undefined : verdicts.find(keyOf(undefined));
    if (known !== undefined) return this.#dialerFor(known).dialCalls(listener, context);
    return this.#links.dial(listener, { kind: 'any' }, (first, signal) => this.#find(context, first, signal));
  }

  #dialerFor({ kind }: Verdict): CallDialer {
    const { modern, modernToLegacy } = this.#options.joined;
    return kind === 'modern' ? modern : modernToLegacy;
  }

  /** Rejects with a BridgeError when the server cannot be asked now, or with the reason of the signal. */
  async #find(context: CallContext, { exchange }: Request, signal: AbortSignal): Promise<FoundLink> {
    const { verdicts, keyOf } = this.#options;
    const forwarded = exchange?.lane.headers;
    // Whoever waits for this is not to suffer when the client leaves that happened to be first.
    const asked = verdicts.resolve(keyOf(forwarded), () => this.#ask(forwarded));
    const dialer = this.#dialerFor(await untilAborted(asked, signal));
    return { open: (client) => dialer.dialCalls(client, context), close: () => {} };
  }

  async #ask(forwarded: Forwarded): Promise<Verdict> {
    const { failures, target, http, clientInfo, maxMessageBytes, deps } = this.#options;
    const { clock, log } = deps;
    const { url } = target;
    const deadline = new Deadline(http, showUrl(url));
    const { signal } = deadline;
    const asked = { http, url, cookies: new SessionCookies(), forwarded, maxMessageBytes };
    const attempts = new OwnAttempts({ target: asked, clientInfo, timeoutMs: PROBE_TIMEOUT_MS, signal });
    try {
      const detection = await detect({ attempts, order: ['discover'], goal: 'era', clock, log, signal });
      this.#reachability.note(undefined);
      this.#wasThere = true;
      if (detection.kind === 'modern') return { kind: 'modern', revision: detection.revision };
      const confidence = detection.kind === 'legacy' ? detection.confidence : 'weak';
      return { kind: 'legacy', by: 'discover', confidence };
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (isOutOfReach(error)) this.#reachability.note(error);
      if (!this.#wasThere) failures.tell(error);
      throw error;
    } finally {
      deadline.clear();
    }
  }

  close(reason: BridgeError): void {
    this.#links.close(reason);
  }
}
