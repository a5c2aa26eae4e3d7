import type { Deps } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { changeNotifications } from '../../../mcp/translate/change-notifications.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { INITIALIZE, INITIALIZED } from '../../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../../wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../wire/write-message.ts';
import { Exchange } from '../../exchange.ts';
import type { UpstreamDialer, UpstreamLink } from '../../ports.ts';
import {
  type ServerEnd,
  type ServerLifecycle,
  type SharedEra,
  SharedServer,
  type SharedServerOptions,
} from '../shared-server.ts';
import type { ClientMessage } from '../waiting-messages.ts';
import { FromClients } from './from-clients.ts';
import { FromServer } from './from-server.ts';
import { type InitializeResult, isSameOffer, readInitializeResult, refusalOf } from './initialize-result.ts';
import { LegacyState } from './legacy-state.ts';
import { SeveralClients } from './several-clients.ts';
import type { LegacyClient, SharingPolicy } from './sharing-policy.ts';

export interface LegacyEraOptions {
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** What the server is told it talks to. */
  readonly clientInfo: Implementation;
}

/** One server of the legacy era for several clients. */
export interface SharedLegacyServer extends UpstreamDialer {
  /** Starts the server if it does not run, and keeps it running without clients. */
  keepWarm(): void;
  /**
   * Goes on with the next connection of the dialer, which has been through a handshake in the name of the bridge with this
   * result. False: that connection is of no use.
   */
  startInitialized(result: object): boolean;
}

export function createSharedLegacyServer(options: LegacyEraOptions & SharedServerOptions): SharedLegacyServer {
  const state = new LegacyState(options.deps.clock);
  const era = new LegacyEra(state, new SeveralClients(state, options.deps.clock), options);
  const server = new SharedServer(era, options);
  const startInitialized = (result: object): boolean => era.withHandshake(result, () => server.startIdle());
  return Object.assign(server, { startInitialized });
}

/** The one real handshake with a legacy server, and what a new child has to be told of what the old one knew. */
export class LegacyEra implements SharedEra<LegacyClient> {
  readonly firstState = 'handshaking';
  readonly clients: LegacyState['clients'];
  readonly withdrawn: LegacyState['withdrawn'];
  readonly fromClients: FromClients;
  readonly fromServer: FromServer;
  readonly #state: LegacyState;
  readonly #policy: SharingPolicy;
  readonly #options: LegacyEraOptions;
  /** What the clients were told the server offers; a next child must offer the same to go on with them. */
  #previous: InitializeResult | undefined;
  #stopTimer = (): void => {};
  /** The answer to a handshake that was made before the server is started. */
  #made: Frame | undefined;

  constructor(state: LegacyState, policy: SharingPolicy, options: LegacyEraOptions) {
    this.clients = state.clients;
    this.withdrawn = state.withdrawn;
    this.#state = state;
    this.#policy = policy;
    this.#options = options;
    this.fromClients = new FromClients(state, policy);
    this.fromServer = new FromServer(state, policy, options.deps.log);
  }

  newClient(): LegacyClient {
    return this.#policy.newClient();
  }

  takeUnsent({ client, frame }: ClientMessage<LegacyClient>): boolean {
    if (frame.method !== INITIALIZED) return false;
    client.state.finishHandshake();
    return true;
  }

  /** Calls `start`, and takes the server that it starts for one that has answered the handshake so. */
  withHandshake(result: object, start: () => boolean): boolean {
    this.#made = resultFrame(this.#state.nextId(), result);
    const isStarted = start();
    this.#made = undefined;
    return isStarted;
  }

  started(link: UpstreamLink, lifecycle: ServerLifecycle): void {
    if (this.#made !== undefined) return this.#answered(this.#made, link, lifecycle);
    const { deps, handshakeTimeoutMs, clientInfo } = this.#options;
    const giveUp = (): void => lifecycle.giveUp(link, this.#timedOut(lifecycle.name));
    this.#stopTimer = handshakeTimeoutMs === 0 ? () => {} : deps.clock.after(handshakeTimeoutMs, giveUp);
    const id = this.#state.nextId();
    this.#state.own.set(id, (answer) => this.#answered(answer, link, lifecycle));
    const { capabilities, lane } = this.#policy;
    const params = { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo };
    const exchange = lane && new Exchange(id, INITIALIZE, lane, undefined, deps.clock.now());
    link.send(requestFrame(id, INITIALIZE, params), exchange);
  }

  #timedOut(name: string): BridgeError {
    const timeoutMs = this.#options.handshakeTimeoutMs;
    const message = `${name} did not answer initialize within ${timeoutMs} ms; raise --request-timeout if it needs longer.`;
    return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
  }

  #answered(answer: Frame, link: UpstreamLink, lifecycle: ServerLifecycle): void {
    const offer = readInitializeResult(answer);
    if (offer === undefined) return lifecycle.giveUp(link, refusalOf(lifecycle.name, answer));
    this.#stopTimer();
    if (this.#policy.redeclares(offer)) return lifecycle.startOver(link, TOLD_ANEW);
    this.#state.offer = offer;
    lifecycle.serving(link);
    link.send(notificationFrame(INITIALIZED));
    this.#policy.served(offer);
    const previous = this.#previous;
    this.#previous = offer;
    if (previous !== undefined && isSameOffer(previous, offer)) this.#resume(link, offer);
    else if (previous !== undefined) this.#dismissIntroduced(lifecycle.name);
    lifecycle.letGo();
  }

  /** Brings a new child to where the old one was, and tells the clients to look again: they may have missed changes. */
  #resume(link: UpstreamLink, { capabilities }: InitializeResult): void {
    this.fromClients.restore(link);
    for (const notification of changeNotifications(capabilities, this.#state.subscriptions.uris())) {
      this.fromServer.take(link, notification, undefined);
    }
  }

  /** Ends the sessions of those who know another offer than the server makes now; it never heard of their wishes. */
  #dismissIntroduced(name: string): void {
    const reason = `${name} was restarted and offers other capabilities than before; open a new session.`;
    for (const client of this.#state.clients.toArray().filter(({ state }) => state.isIntroduced)) {
      this.#state.forget(client);
      client.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
    }
  }

  ended(end: ServerEnd): void {
    this.#stopTimer();
    this.#state.offer = undefined;
    this.#policy.ended(end);
    this.fromClients.lost(end.reason);
  }

  close(): void {
    this.#stopTimer();
    this.#state.offer = undefined;
    this.#policy.close();
  }
}

const TOLD_ANEW = new BridgeError('ERR_SESSION_CLOSED', 'The server is told anew what its client can do.');
