import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Readiness } from '../../relay/ports.ts';
import { SessionState } from '../../relay/sessions/session-state.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { endSession, type SessionTarget } from '../remote/end-session.ts';
import { CallerHeaders, Reachability, type RemoteDialerOptions } from '../remote/remote-environment.ts';
import type { SessionKey } from '../remote/session-key.ts';
import { StreamableLink } from './link.ts';

/** Creates sessions with a server over Streamable HTTP, in all revisions that have sessions. */
export function createStreamableDialer(options: RemoteDialerOptions): Connector {
  return new StreamableDialer(options);
}

class StreamableDialer implements Connector {
  readonly name: string;
  readonly #options: RemoteDialerOptions;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #links = new Set<Connection>();
  /** Sessions being ended at the server. */
  readonly #endings = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: RemoteDialerOptions) {
    this.name = showUrl(options.url);
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
    this.#idWarnings = new IdWarnings(this.name, options.deps.log);
  }

  connect(session = new SessionState()): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    const { deps, ...remote } = this.#options;
    const cookies = new SessionCookies();
    const caller = new CallerHeaders();
    const link = new StreamableLink({
      environment: { ...remote, cookies, caller, idWarnings: this.#idWarnings, log: deps.log },
      session,
      reachable: (error) => this.#reachability.note(error),
      left: (key) => {
        this.#links.delete(link);
        if (!session.isHandedOver) this.#endSession(key, { cookies, forwarded: caller.latest });
      },
    });
    this.#links.add(link);
    return link;
  }

  #endSession(session: SessionKey, own: Pick<SessionTarget, 'cookies' | 'forwarded'>): void {
    if (session.id === undefined) return;
    const { http, url, deps } = this.#options;
    const ending = endSession({ http, url, ...own }, session.headers).then((status) => {
      deps.log.debug({ status }, 'told the server that the session is over');
    });
    this.#endings.add(ending);
    void ending.finally(() => this.#endings.delete(ending));
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const link of [...this.#links]) link.close(SHUTTING_DOWN);
    await Promise.all(this.#endings);
    this.#options.http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#options.http.close();
  }
}
