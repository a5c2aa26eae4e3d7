import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Readiness } from '../../relay/ports.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { CallerHeaders, Reachability, type RemoteDialerOptions } from '../remote/remote-environment.ts';
import { HttpSseLink } from './link.ts';

/** Creates sessions with a server over HTTP+SSE, the transport of revision 2024-11-05. */
export function createHttpSseDialer(options: RemoteDialerOptions): Connector {
  return new HttpSseDialer(options);
}

class HttpSseDialer implements Connector {
  readonly name: string;
  readonly #options: RemoteDialerOptions;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #links = new Set<Connection>();
  #isClosed = false;

  constructor(options: RemoteDialerOptions) {
    this.name = showUrl(options.url);
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
    this.#idWarnings = new IdWarnings(this.name, options.deps.log);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    const { deps, ...remote } = this.#options;
    const link = new HttpSseLink({
      environment: {
        ...remote,
        cookies: new SessionCookies(),
        caller: new CallerHeaders(),
        idWarnings: this.#idWarnings,
        log: deps.log,
      },
      reachable: (error) => this.#reachability.note(error),
      left: () => this.#links.delete(link),
    });
    this.#links.add(link);
    return link;
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const link of [...this.#links]) link.close(SHUTTING_DOWN);
    this.#options.http.close();
    return Promise.resolve();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#options.http.close();
  }
}
