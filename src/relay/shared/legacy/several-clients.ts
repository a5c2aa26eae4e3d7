import type { Deps } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { CARRIED_CAPABILITIES } from '../../../mcp/vocabulary/client-capabilities.ts';
import { ELICIT } from '../../../mcp/vocabulary/methods.ts';
import { type Fields, readField } from '../../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { errorFrame } from '../../../wire/write-message.ts';
import type { Exchange, Lane } from '../../exchange.ts';
import type { UpstreamLink } from '../../ports.ts';
import type { ClientLink } from '../client-link.ts';
import type { ServerEnd } from '../shared-server.ts';
import type { InitializeResult } from './initialize-result.ts';
import { HandshakingClient, type LegacyClient } from './legacy-client.ts';
import type { LegacyState } from './legacy-state.ts';
import type { Owner, PendingCall } from './pending-calls.ts';

/** A request of the server. */
export interface ServerQuestion {
  readonly link: UpstreamLink;
  readonly question: Frame;
  /** The exchange on the link that it came with, where the transport can tell. */
  readonly known: Exchange | undefined;
  /** Says so to the server, later than `ask` could. */
  readonly refuse: (reason: BridgeError) => void;
}

/**
 * Who the clients of a shared legacy server are to each other: whom of them it may ask something, who hears what names
 * nobody, and what is kept from it and from them.
 */
export interface SharingPolicy {
  /** What the server is told in `initialize`. */
  readonly capabilities: Fields;
  /** The lane of everything that is sent to the server, whichever call it is for; undefined: it matters to nobody. */
  readonly lane: Lane | undefined;
  /** What names no owner, as tasks do, passes all the same. */
  readonly passesUnowned: boolean;
  /** Called for each link. */
  newClient(): LegacyClient;

  /** Returns why nobody can be asked this; undefined: somebody is, or will be, or `refuse` is called. */
  ask(asked: ServerQuestion): BridgeError | undefined;
  /** The server withdraws what no client is being asked. */
  questionWithdrawn(id: JsonRpcId): void;
  elicitationCompleted(elicitationId: string, notification: Frame): void;
  /** Whose a message is that names no call. */
  unnamedOwner(): Owner;
  /** Whose a log message is that names no call. */
  logOwner(): Owner;
  /** Who is told that a resource has changed. */
  watchersOf(uri: string): Iterable<ClientLink<LegacyClient>>;

  /** A call was answered, and its client has the answer. */
  callAnswered(): void;
  /** A call was given up that the server may still be at work on. */
  callGivenUp(exchange: Exchange): void;
  /** The server answers what is not open. */
  answeredLate(id: JsonRpcId | undefined): void;
  /** Tells the client that its call ended with the child. */
  callLost(call: PendingCall, reason: BridgeError): void;

  /** The server announces that one of its lists has changed; all clients hear of it, too. */
  listChanged(method: string | undefined): void;
  /** True: a server of this kind was told the wrong thing; `capabilities` is another now, and it must be told anew. */
  redeclares(offer: InitializeResult): boolean;
  /** A child has answered the handshake. */
  served(offer: InitializeResult): void;
  /** The child is gone, and with it whatever it had asked. */
  ended(end: ServerEnd): void;
  close(): void;
}

/** Clients that must learn nothing of each other. One is asked only what certainly belongs to a call of its own. */
export class SeveralClients implements SharingPolicy {
  readonly capabilities = CARRIED_CAPABILITIES;
  readonly lane = undefined;
  readonly passesUnowned = false;
  readonly #state: LegacyState;
  readonly #deps: Pick<Deps, 'clock'>;

  constructor(state: LegacyState, deps: Pick<Deps, 'clock'>) {
    this.#state = state;
    this.#deps = deps;
  }

  newClient(): LegacyClient {
    return new HandshakingClient(this.#deps.clock);
  }

  ask({ question }: ServerQuestion): BridgeError | undefined {
    const owner = this.#orOnlyClient(this.#state.calls.asker());
    if (owner.kind !== 'one') {
      return new BridgeError(
        'ERR_SHARED_AMBIGUOUS',
        `${question.method} names no call, and calls of ${owner.kind === 'nobody' ? 'no client' : 'several clients'} are open: nobody can be asked without guessing. Servers that ask their clients are best run with --isolation session.`,
      );
    }
    const refusal = this.#state.ask(owner, question);
    if (refusal === undefined && question.method === ELICIT) {
      this.#state.questions.noteElicitation(readField(question, 'elicitationId'), owner.client);
    }
    return refusal;
  }

  #orOnlyClient(owner: Owner): Owner {
    const only = owner.kind === 'nobody' ? this.#state.clients.sole : undefined;
    return only === undefined ? owner : { kind: 'one', client: only, exchange: undefined };
  }

  questionWithdrawn(): void {}

  elicitationCompleted(elicitationId: string, notification: Frame): void {
    this.#state.questions.clientOfElicitation(elicitationId)?.listener.fromServer(notification);
  }

  unnamedOwner(): Owner {
    return this.#orOnlyClient(this.#state.calls.owner());
  }

  logOwner(): Owner {
    return this.#state.calls.owner();
  }

  watchersOf(uri: string): Iterable<ClientLink<LegacyClient>> {
    return this.#state.subscriptions.clientsFor(uri);
  }

  callAnswered(): void {}
  callGivenUp(): void {}
  answeredLate(): void {}

  callLost({ client, exchange, idToken }: PendingCall, reason: BridgeError): void {
    client.listener.fromServer(errorFrame(idToken, rpcErrorOf(reason)), exchange);
  }

  listChanged(): void {}

  redeclares(): boolean {
    return false;
  }

  served(): void {}
  ended(): void {}
  close(): void {}
}
