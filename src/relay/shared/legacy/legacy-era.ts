import type { Deps } from '../../../deps.ts';
import { BridgeError, MAY_BE_FRAMED } from '../../../errors.ts';
import { changeNotifications } from '../../../mcp/translate/change-notifications.ts';
import type { Implementation } from '../../../mcp/vocabulary/meta.ts';
import { INITIALIZE, INITIALIZED, SUBSCRIBE } from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { LATEST_LEGACY_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../../wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../wire/write-message.ts';
import { Call } from '../../call.ts';
import type { ServerListener, SessionDialer, UpstreamLink } from '../../ports.ts';
import {
  type RestorableSession,
  Restoration,
  type RestoredConnection,
  type Wish,
} from '../../sessions/restore-session.ts';
import { wishesOf } from '../../sessions/session-state.ts';
import {
  type ServerEnd,
  type ServerLifecycle,
  type SharedEra,
  SharedServer,
  type SharedServerOptions,
} from '../shared-server.ts';
import { ABANDONED_MS } from './attribution.ts';
import { FromClients } from './from-clients.ts';
import { FromServer } from './from-server.ts';
import { HandshakingClient } from './handshaking-client.ts';
import {
  type InitializeResult,
  isSameOffer,
  readInitializeResult,
  refusalOf,
  resultForClient,
} from './initialize-result.ts';
import type { LegacyClient } from './legacy-client.ts';
import { LegacyState } from './legacy-state.ts';
import { SeveralClients } from './several-clients.ts';
import type { SharingPolicy } from './sharing-policy.ts';

export interface LegacyEraOptions {
  readonly deps: Deps;
  /** A server that has not answered `initialize` by then is replaced; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  /** The client that the server is told it talks to. */
  readonly clientInfo: Implementation;
}

/** A server of the legacy era that several clients share. */
export interface SharedLegacyServer extends SessionDialer {
  /** Starts the server if it does not run, and keeps it running without clients. */
  keepWarm(): void;
  /**
   * Goes on with the next connection of the dialer, which has been through a handshake in the name of the bridge with this
   * result. False: that connection is of no use.
   */
  startInitialized(result: object): boolean;
}

export function createSharedLegacyServer(options: LegacyEraOptions & SharedServerOptions): SharedLegacyServer {
  const state = new LegacyState(options.deps.clock, ABANDONED_MS);
  const era = new LegacyEra(state, new SeveralClients(state, options.deps.clock), options);
  const server = new SharedServer(era, options);
  const startInitialized = (result: object): boolean => era.withHandshake(result, () => server.startIdle());
  const dial = (listener: ServerListener): UpstreamLink => {
    const client = new HandshakingClient(listener, options.deps.clock);
    client.join(server);
    return client;
  };
  return Object.assign(server, { dial, startInitialized });
}

/**
 * The one real handshake with a legacy server. What a new child has to be told of what the old one knew is the sum of what
 * the clients have set up.
 */
export class LegacyEra implements SharedEra<LegacyClient>, RestorableSession {
  readonly firstState = 'handshaking';
  readonly isInitialized = true;
  readonly clients: LegacyState['clients'];
  readonly openCalls = [];
  readonly withdrawn: LegacyState['withdrawn'];
  readonly fromClients: FromClients;
  readonly fromServer: FromServer;
  readonly #state: LegacyState;
  readonly #policy: SharingPolicy;
  readonly #options: LegacyEraOptions;
  /** The offer that the clients were told. They can go on with a next child only if it makes the same offer. */
  #told: InitializeResult | undefined;
  /** The child took the place of one that the clients may have missed something of. */
  #isSuccessor = false;
  #restoration: Restoration | undefined;
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

  takeUnsent(client: LegacyClient, { method }: Frame): boolean {
    if (method !== INITIALIZED) return false;
    client.finishHandshake();
    return true;
  }

  /** Calls `start`, and takes the server that it starts for one that has answered the handshake so. */
  withHandshake(result: object, start: () => boolean): boolean {
    this.#made = resultFrame(this.#state.nextId(), result);
    const isStarted = start();
    this.#made = undefined;
    return isStarted;
  }

  started(server: ServerLifecycle): void {
    this.#restoration = new Restoration(this, this.#connection(server));
    this.#restoration.start();
  }

  #connection(server: ServerLifecycle): RestoredConnection {
    const { deps, handshakeTimeoutMs: timeoutMs } = this.#options;
    const { name } = server;
    return {
      log: deps.log,
      delivery: 'pipe',
      timeLimit: { clock: deps.clock, timeoutMs, exceeded: () => timedOut(name, timeoutMs) },
      ask: (method, params, answered) => {
        if (method === INITIALIZE && this.#made !== undefined) return answered(this.#made);
        const id = this.#state.nextId();
        this.#state.own.set(id, answered);
        const { lane } = this.#policy;
        const isSeen = lane !== undefined && method === INITIALIZE;
        const call = isSeen ? new Call(id, method, lane, undefined, deps.clock.now()) : undefined;
        server.link.send(requestFrame(id, method, params), call);
      },
      tell: (method, taken) => {
        server.link.send(notificationFrame(method));
        this.#introduced(name);
        taken();
      },
      offered: (_offer, answer) => this.#offered(answer, server),
      refusal: (answer) => refusalOf(name, answer),
      restored: (missed) => {
        for (const notification of missed) this.fromServer.take(server.link, notification, undefined);
        server.letGo();
      },
      failed: (reason) => server.giveUp(reason),
    };
  }

  #offered(answer: Frame, server: ServerLifecycle): boolean {
    const offer = readInitializeResult(answer);
    if (offer === undefined) {
      server.giveUp(refusalOf(server.name, answer));
      return false;
    }
    if (this.#policy.redeclares(offer)) {
      server.startOver(TOLD_ANEW);
      return false;
    }
    this.#state.offer = offer;
    server.serving();
    return true;
  }

  #introduced(name: string): void {
    const { offer } = this.#state;
    if (offer === undefined) return;
    this.#policy.served(offer);
    const told = this.#told;
    this.#told = offer;
    this.#isSuccessor = told !== undefined && isSameOffer(told, offer);
    if (told !== undefined && !this.#isSuccessor) this.#dismissIntroduced(name);
  }

  // ---- what a new child is told

  get initialize(): Fields {
    const { capabilities } = this.#policy;
    return { protocolVersion: LATEST_LEGACY_REVISION.id, capabilities, clientInfo: this.#options.clientInfo };
  }

  wishes(): readonly Wish[] {
    const { levels, subscriptions } = this.#state;
    const uris = subscriptions.uris();
    for (const uri of uris) subscriptions.setGranted(uri, false);
    return wishesOf(levels.mostVerbose(), uris);
  }

  settled(wish: Wish, isGranted: boolean): void {
    if (wish.method === SUBSCRIBE) this.#state.subscriptions.setGranted(wish.params.uri, isGranted);
  }

  missed(): readonly Frame[] {
    const { offer, subscriptions } = this.#state;
    return this.#isSuccessor ? changeNotifications(offer?.capabilities, subscriptions.uris()) : [];
  }

  /** Ends the sessions of those who know another offer than the server makes now; it never heard of their wishes. */
  #dismissIntroduced(name: string): void {
    const reason = `${name} was restarted and offers other capabilities than before; open a new session.`;
    for (const client of this.#state.clients.toArray().filter(({ isIntroduced }) => isIntroduced)) {
      this.#state.forget(client);
      client.listener.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', reason));
    }
  }

  /** Clients that come later are told what the server is like by now. The sessions of the others go on. */
  replaced(answer: Frame): void {
    const offer = readInitializeResult(answer);
    if (offer === undefined) return;
    this.#state.offer = offer;
    this.#told = offer;
    // Sessions for modern clients are clients of a server that all share.
    const shown = resultFrame(0, resultForClient(offer, LATEST_LEGACY_REVISION.id));
    for (const { listener } of this.#state.clients.toArray()) listener.serverReplaced?.(shown);
  }

  /** No server serves anymore. */
  #forgetServer(): void {
    this.#restoration?.cancel();
    this.#state.offer = undefined;
  }

  ended(end: ServerEnd): void {
    this.#forgetServer();
    this.#state.namesCalls = false;
    this.#state.abandoned.clear();
    this.#policy.ended(end);
    this.fromClients.lost(end.reason);
  }

  close(): void {
    this.#forgetServer();
    this.#policy.close();
  }
}

const TOLD_ANEW = new BridgeError('ERR_SESSION_CLOSED', 'The server is initialized again with other capabilities.');

function timedOut(name: string, timeoutMs: number): BridgeError {
  const message = `${name} did not answer initialize within ${timeoutMs} ms; raise --request-timeout if it needs longer. ${MAY_BE_FRAMED}`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
}
