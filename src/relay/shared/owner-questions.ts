import { BridgeError } from '../../errors.ts';
import { isInteractive } from '../../mcp/vocabulary/methods.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { withId } from '../../wire/splice.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Exchange } from '../exchange.ts';
import type { UpstreamLink } from '../ports.ts';
import type { Owner } from './pending-calls.ts';
import type { SharedState } from './shared-state.ts';
import type { SoleOwner } from './sole-owner.ts';

export interface AskedByServer {
  readonly link: UpstreamLink;
  readonly question: Frame;
  /** The exchange on the link that it came with, where the transport can tell. */
  readonly known: Exchange | undefined;
  /** Says so to the server, later than `take` could. */
  readonly refuse: (reason: BridgeError) => void;
}

/**
 * Puts what a server asks that is one client's own to the call that certainly caused it. Not to a likely one: several calls
 * of one name may be of several people, and an answer in the wrong call is a wrong answer even for the same one.
 */
export class OwnerQuestions {
  readonly #state: SharedState;
  readonly #owner: SoleOwner;

  constructor(state: SharedState, owner: SoleOwner) {
    this.#state = state;
    this.#owner = owner;
  }

  /** Returns why nobody can be asked this. */
  take(asked: AskedByServer): BridgeError | undefined {
    const { link, question, refuse } = asked;
    const refusal = this.#owner.refuse(question);
    if (refusal !== undefined) {
      link.send(errorFrame(question.id as JsonRpcId, refusal));
      return undefined;
    }
    const { lastId, unclear } = this.#state;
    const outcome = this.#ask(asked, lastId);
    if (outcome !== 'unclear') return outcome;
    const askAgain = (): boolean => {
      const later = this.#ask(asked, lastId);
      if (later instanceof BridgeError) refuse(later);
      return later !== 'unclear';
    };
    return unclear.hold(question, askAgain, () => refuse(UNCLEAR_CALL)) ? undefined : UNCLEAR_CALL;
  }

  /** An error: it may be of a call that was given up, and nobody will ever know. */
  #ask({ link, question, known }: AskedByServer, lastId: number): BridgeError | 'unclear' | undefined {
    const call = this.#callOf(question, known, lastId);
    if (call === 'given up') return UNCLEAR_CALL;
    if (call.kind === 'ambiguous') return 'unclear';
    const serverId = question.id as JsonRpcId;
    // A call that cannot be answered with a question is as good as none.
    if (call.kind === 'nobody' || call.exchange === undefined || !isInteractive(call.exchange.method)) {
      this.#owner.takeOrphan(question, (answer) => void link.send(withId(answer, serverId)));
      return undefined;
    }
    this.#owner.asked();
    const { id } = this.#state.questions.open(call.client, serverId);
    call.client.listener.fromServer(withId(question, id), call.exchange);
    return undefined;
  }

  /** The call that is named, or the only one of those up to `lastId` that can be meant. */
  #callOf(question: Frame, known: Exchange | undefined, lastId: number): Owner | 'given up' {
    const { calls, givenUp } = this.#state;
    const named = this.#owner.callOf(question);
    if (named !== undefined) return (named !== 'unknown' && calls.ownerWithId(named.upstreamId)) || NOBODY;
    if (known !== undefined && this.#owner.knowsByStream) return calls.ownerWithId(known.id) ?? NOBODY;
    this.#owner.unplaced();
    const sole = calls.soleAsker(lastId);
    if (givenUp.isEmpty || sole.kind === 'nobody') return sole;
    this.#owner.asked();
    this.#owner.doubtful();
    return 'given up';
  }
}

const NOBODY: Owner = { kind: 'nobody' };

const UNCLEAR_CALL = new BridgeError(
  'ERR_SHARED_AMBIGUOUS',
  'The request names no call, and several calls are open, or were given up, that it may belong to: nobody can be asked without guessing.',
);
