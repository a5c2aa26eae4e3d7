import type { Protocol, RemoteConfig, UrlTarget } from '../config.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { HttpClient } from '../http/client/client.ts';
import type { Credentials } from '../http/client/credentials.ts';
import { showUrl } from '../http/shown-url.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import type { Readiness, ServerListener, UpstreamDialer, UpstreamLink } from '../relay/ports.ts';
import type { FirstFailures } from './detect/first-failures.ts';
import type { KeyOf } from './detect/server-key.ts';
import { DetectingLink } from './detect/sessions/detecting-link.ts';
import { LinkFinder, type ModernTurn } from './detect/sessions/find-link.ts';
import type { VerdictCache } from './detect/verdict-cache.ts';
import { createHttpSseDialer } from './http-sse/dialer.ts';
import type { RemoteDialerOptions } from './remote/remote-options.ts';
import { createStreamableDialer } from './streamable-session/dialer.ts';

export interface RemoteOptions {
  readonly target: UrlTarget;
  readonly protocol: Protocol;
  readonly remote: RemoteConfig;
  readonly maxMessageBytes: number;
  /** Who asks where no client does; also the User-Agent. */
  readonly clientInfo: Implementation;
  /** The credentials that all clients share. */
  readonly credentials?: Credentials | undefined;
  readonly deps: Deps;
}

export interface SessionKnowledge {
  /** How the server takes an `initialize`. */
  readonly verdicts: VerdictCache;
  readonly keyOf: KeyOf;
  readonly modern: ModernTurn | undefined;
  readonly failures: FirstFailures;
}

/**
 * Connections to a server at a URL for sessions, as their clients begin them: with `initialize`. Which transport it
 * speaks is found out with the first message of the first client, unless `--transport` says so.
 * @throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used
 */
export function createSessionDialer(options: RemoteOptions, knowledge: SessionKnowledge): UpstreamDialer {
  const { protocol, remote } = options;
  const { transport } = remote;
  if (transport === 'sse') return createHttpSseDialer(dialerOptions(options));
  if (transport === 'streamable-http' && protocol === 'legacy' && knowledge.modern === undefined) {
    return createStreamableDialer(dialerOptions(options));
  }
  return new SessionDialer(options, knowledge);
}

export function dialerOptions(options: RemoteOptions): RemoteDialerOptions {
  const { target, remote, maxMessageBytes, deps } = options;
  return { url: target.url, http: createHttpClient(options), timeouts: remote.timeouts, maxMessageBytes, deps };
}

export function createHttpClient({
  remote,
  clientInfo,
  credentials,
  deps,
}: Pick<RemoteOptions, 'remote' | 'clientInfo' | 'credentials' | 'deps'>): HttpClient {
  const { headers, bearerTokenFile, tls, proxyEnv } = remote;
  const userAgent = `${clientInfo.name}/${clientInfo.version}`;
  return new HttpClient({ headers, bearerTokenFile, credentials, tls, proxyEnv, userAgent, clock: deps.clock });
}

class SessionDialer implements UpstreamDialer {
  readonly name: string;
  readonly #streamable: UpstreamDialer;
  readonly #httpSse: UpstreamDialer;
  readonly #finder: LinkFinder;
  readonly #links = new Set<DetectingLink>();
  #isClosed = false;

  constructor(options: RemoteOptions, knowledge: SessionKnowledge) {
    const { target, protocol, remote, clientInfo, maxMessageBytes, deps } = options;
    const { url } = target;
    this.name = showUrl(url);
    const shared = dialerOptions(options);
    this.#streamable = createStreamableDialer(shared);
    // A client of its own: each dialer closes the one it has.
    this.#httpSse = createHttpSseDialer(dialerOptions(options));
    this.#finder = new LinkFinder({
      url,
      protocol,
      remote,
      http: shared.http,
      streamable: this.#streamable,
      httpSse: this.#httpSse,
      clientInfo,
      maxMessageBytes,
      deps,
      ...knowledge,
    });
  }

  dial(listener: ServerListener): UpstreamLink {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    const left = (): void => void this.#links.delete(link);
    const link = new DetectingLink({ listener, first: 'initialize', findLink: this.#finder.find, left });
    this.#links.add(link);
    return link;
  }

  /** As the transport knows that is in use; before the first client both are as good as reachable. */
  readiness(): Readiness {
    const streamable = this.#streamable.readiness();
    const httpSse = this.#httpSse.readiness();
    return streamable.state === 'ready' ? httpSse : streamable;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const link of [...this.#links]) link.close(SHUTTING_DOWN);
    await Promise.all([this.#streamable.close(), this.#httpSse.close()]);
  }

  killNow(): void {
    this.#isClosed = true;
    this.#streamable.killNow();
    this.#httpSse.killNow();
  }
}
