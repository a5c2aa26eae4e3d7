import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { CARRIED_CAPABILITIES } from '../../../mcp/vocabulary/client-declarations.ts';
import { ELICIT, mayAsk } from '../../../mcp/vocabulary/methods.ts';
import { readField } from '../../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import { Call } from '../../call.ts';
import { ABANDONED_MS, type AbandonedCall, attributeQuestion, type ClientIdentity } from './attribution.ts';
import type { LegacyClient } from './legacy-client.ts';
import type { LegacyState } from './legacy-state.ts';
import type { Owner, PendingCall } from './pending-calls.ts';
import type { ServerQuestion, SharingPolicy } from './sharing-policy.ts';

/** Clients that must learn nothing of each other. One is asked only what certainly belongs to a call of its own. */
export class SeveralClients implements SharingPolicy {
  readonly capabilities = CARRIED_CAPABILITIES;
  readonly lane = undefined;
  readonly passesUnowned = false;
  readonly #state: LegacyState;
  readonly #clock: Clock;

  constructor(state: LegacyState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  ask({ question }: ServerQuestion): BridgeError | undefined {
    const owner = this.#asker();
    if (owner.kind !== 'one') {
      const why =
        owner.kind === 'nobody'
          ? 'no client has an open call'
          : `calls of several clients are open, or were canceled less than ${ABANDONED_MS / 1000} s ago`;
      return new BridgeError(
        'ERR_SHARED_AMBIGUOUS',
        `${question.method} does not say which call it belongs to, and ${why}, so it is unclear which client to ask. Run servers that ask their clients with --isolation session.`,
      );
    }
    const refusal = this.#state.ask(owner, question);
    // A client that left when it was asked is told nothing more.
    if (refusal === undefined && question.method === ELICIT && owner.client.isListed) {
      this.#state.questions.noteElicitation(readField(question, 'elicitationId'), owner.client);
    }
    return refusal;
  }

  /** Only some calls ask at all. Without one that may have asked, any open call tells whom to ask, or being alone does. */
  #asker(): Owner {
    const { pendingCalls, abandoned } = this.#state;
    const nowMs = this.#clock.now();
    const open = pendingCalls.where((pending) => mayAsk(pending.call.method) && !isLost(pending, nowMs));
    const owner = this.#ownerAmong(open, abandoned.askers());
    return owner.kind === 'nobody' ? this.#orOnlyClient(pendingCalls.owner()) : owner;
  }

  #ownerAmong(open: readonly PendingCall[], abandoned: readonly ClientIdentity[]): Owner {
    const clientOf = ({ client }: PendingCall): ClientIdentity => client.identity;
    const owner = attributeQuestion({ open, abandoned, clientOf, askedIn: 'client' });
    switch (owner.kind) {
      case 'call':
        return { kind: 'one', client: owner.candidate.client, call: owner.candidate.call };
      case 'client':
        return this.#clientWith(owner.client);
      case 'several':
      case 'abandoned':
        return AMBIGUOUS;
      case 'none':
        return NOBODY;
    }
  }

  /** A client that has left is not replaced by another: what was meant for it reaches nobody. */
  #clientWith(identity: ClientIdentity): Owner {
    for (const client of this.#state.clients.toArray()) {
      if (client.identity === identity) return { kind: 'one', client, call: undefined };
    }
    return AMBIGUOUS;
  }

  #orOnlyClient(owner: Owner): Owner {
    const only = owner.kind === 'nobody' ? this.#state.clients.sole : undefined;
    return only === undefined ? owner : { kind: 'one', client: only, call: undefined };
  }

  questionWithdrawn(): void {}

  elicitationCompleted(elicitationId: string, notification: Frame): void {
    this.#state.questions.clientOfElicitation(elicitationId)?.listener.fromServer(notification);
  }

  unnamedOwner(): Owner {
    return this.#orOnlyClient(this.logOwner());
  }

  logOwner(): Owner {
    const { pendingCalls, abandoned } = this.#state;
    return abandoned.isEmpty
      ? pendingCalls.owner()
      : this.#ownerAmong(
          pendingCalls.where(() => true),
          abandoned.clients(),
        );
  }

  watchersOf(uri: string): Iterable<LegacyClient> {
    return this.#state.subscriptions.clientsFor(uri);
  }

  callAnswered(): void {}
  callAbandoned(): void {}

  /** A client may stand for several, as a pooled session does, which has to know it too. It is told no more than that. */
  abandonedAnswered({ client, id }: AbandonedCall): void {
    if (id === undefined) return;
    const owner = this.#clientWith(client);
    if (owner.kind === 'one') owner.client.listener.fromServer(resultFrame(id, {}), withdrawnCall(id));
  }

  callLost({ client, call, idToken }: PendingCall, reason: BridgeError): void {
    client.listener.fromServer(errorFrame(idToken, rpcErrorOf(reason)), call);
  }

  levelUnwanted(): void {}
  listChanged(): void {}

  redeclares(): boolean {
    return false;
  }

  served(): void {}
  ended(): void {}
  close(): void {}
}

/** True for a call whose client has had no connection for so long that an abandoned call would not count anymore. */
function isLost({ call }: PendingCall, nowMs: number): boolean {
  const { lostAtMs } = call.lane;
  return lostAtMs !== undefined && nowMs - lostAtMs >= ABANDONED_MS;
}

/** Returns a call that marks an answer as one to no open call, whatever id that has: clients use ids again. */
function withdrawnCall(id: number): Call {
  const call = new Call(id, '', { isOpen: false }, undefined, 0);
  call.cancel('client');
  return call;
}

const NOBODY: Owner = { kind: 'nobody' };
const AMBIGUOUS: Owner = { kind: 'ambiguous' };
