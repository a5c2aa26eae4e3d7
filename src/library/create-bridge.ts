import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { createHttpBridge, type HttpBridge } from '../bridge/serve-http.ts';
import { createSystemDeps, systemClock } from '../cli/system-deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { respondError } from '../http/server/respond.ts';
import { type Serve, serveFetch } from './fetch-exchange.ts';
import { createGivenLog } from './given-log.ts';
import { GivenObserver, tellSafely, toStatuses, watchServers } from './given-observer.ts';
import type {
  Bridge,
  BridgeObserver,
  BridgeUrl,
  CreateBridgeOptions,
  HandledRequest,
  RunningServer,
  ServeOptions,
  ServerStatus,
} from './public-types.ts';
import { readOptions } from './read-options.ts';

/** See src/library.ts. */
export async function createBridge(given: CreateBridgeOptions): Promise<Bridge> {
  const { prefix, ...options } = given;
  const checked = parsePrefix(prefix);
  const bridge = await openBridge(options);
  const serveUnseen: Serve = (request, response) => {
    if (!bridge.handle(request, response, { prefix: checked, arrival: 'unseen' })) respondError(response, NOT_OURS);
  };
  return {
    fetch: (request) => serveFetch(request, serveUnseen),
    handle: (request: HandledRequest, response: ServerResponse, next?: () => void) => {
      const isOurs = bridge.handle(request, response, { prefix: checked, arrival: 'seen' });
      if (!isOurs) next?.();
      return isOurs;
    },
    listen: () => bridge.listen(),
    inspect: () => bridge.inspect(),
    close: () => bridge.close(),
    killNow: () => bridge.killNow(),
    [Symbol.asyncDispose]: () => bridge.close(),
  };
}

/** See src/library.ts. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const bridge = await openBridge(options);
  try {
    const urls = await bridge.listen();
    return {
      url: urls[0]?.url ?? '',
      urls,
      inspect: () => bridge.inspect(),
      close: () => bridge.close(),
      killNow: () => bridge.killNow(),
      [Symbol.asyncDispose]: () => bridge.close(),
    };
  } catch (thrown) {
    await bridge.close();
    throw thrown;
  }
}

const NOT_OURS = new BridgeError('ERR_HTTP_PATH', 'This bridge serves nothing at that path.');

/** Returns the prefix without a trailing slash; empty if there is none. */
function parsePrefix(prefix: string | undefined): string {
  const path = prefix?.replace(/\/+$/, '') ?? '';
  if (path === '' || /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)+$/.test(path)) return path;
  throw new BridgeError('ERR_CONFIG_OPTION', 'prefix: expected an absolute path like /tools; got something else.');
}

async function openBridge(given: ServeOptions): Promise<LibraryBridge> {
  const { log: givenLog, observer, ...options } = given;
  const { config, warnings } = await readOptions('serve', options);
  const { listener } = config;
  if (listener.kind !== 'http') throw new Error('a bridge that serves has a listener');
  const log = createGivenLog(givenLog);
  for (const warning of warnings) log.warn(warning);
  const observers = observer === undefined ? [] : [new GivenObserver(observer)];
  const bridge = await createHttpBridge(listener, config, { ...createSystemDeps(log), observers });
  return new LibraryBridge(bridge, observer ?? {}, log);
}

/** State of the bridge. `open`: requests are accepted. `closed`: the bridge is ending or has ended. */
type State = { readonly kind: 'open' } | { readonly kind: 'closed'; readonly ended: Promise<void> };

class LibraryBridge {
  readonly #bridge: HttpBridge;
  readonly #stopWatching: () => void;
  #listening: Promise<void> | undefined;
  #state: State = { kind: 'open' };

  constructor(bridge: HttpBridge, observer: BridgeObserver, log: Logger) {
    this.#bridge = bridge;
    const changed = (server: ServerStatus): void => tellSafely(log, () => observer.serverChanged?.(server));
    this.#stopWatching =
      observer.serverChanged === undefined ? () => {} : watchServers(() => this.inspect(), changed, systemClock);
    void bridge.ended.then((error) => error && tellSafely(log, () => observer.failed?.(error)));
  }

  handle(...[request, response, place]: Parameters<HttpBridge['handle']>): boolean {
    if (this.#state.kind === 'open') return this.#bridge.handle(request, response, place);
    if (!this.#bridge.isServed(request, place)) return false;
    respondError(response, SHUTTING_DOWN);
    return true;
  }

  async listen(): Promise<readonly BridgeUrl[]> {
    if (this.#state.kind === 'closed') throw new BridgeError('ERR_SESSION_CLOSED', 'This bridge is closed.');
    this.#listening ??= this.#bridge.listen();
    await this.#listening;
    return this.#bridge.urls.map(({ label, url }) => ({ label, url }));
  }

  inspect(): readonly ServerStatus[] {
    return toStatuses(this.#bridge.inspect());
  }

  close(): Promise<void> {
    if (this.#state.kind === 'open') this.#state = { kind: 'closed', ended: this.#end() };
    return this.#state.ended;
  }

  async #end(): Promise<void> {
    this.#stopWatching();
    await this.#listening?.catch(() => undefined);
    await this.#bridge.shutdown('SIGTERM');
  }

  killNow(): void {
    this.#stopWatching();
    this.#bridge.killNow();
  }
}
