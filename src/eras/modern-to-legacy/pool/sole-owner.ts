import type { Clock } from '../../../deps.ts';
import { BridgeError } from '../../../errors.ts';
import { findRelatedTask } from '../../../mcp/classify/correlators.ts';
import { refuseInput } from '../../../mcp/classify/input-required.ts';
import { correctedDeclaration } from '../../../mcp/translate/capabilities.ts';
import type { LogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import { ELICIT, isInteractive, LIST_ROOTS, mayAsk, TOOLS_CHANGED } from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { findRevision } from '../../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../../relay/call.ts';
import type { UpstreamLink } from '../../../relay/ports.ts';
import { attributeQuestion } from '../../../relay/shared/legacy/attribution.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { LegacyClient } from '../../../relay/shared/legacy/legacy-client.ts';
import type { LegacyState } from '../../../relay/shared/legacy/legacy-state.ts';
import type { Owner, PendingCall } from '../../../relay/shared/legacy/pending-calls.ts';
import type { ServerQuestion, SharingPolicy } from '../../../relay/shared/legacy/sharing-policy.ts';
import type { ServerEnd } from '../../../relay/shared/shared-server.ts';
import { type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { skipValue } from '../../../wire/json/scan-json.ts';
import { errorFrame, resultFrame } from '../../../wire/write-message.ts';
import { RootsQuestions } from '../questions/roots-questions.ts';
import { Elicitations } from '../questions/url-elicitations.ts';
import { LevelHold } from './level-hold.ts';
import { UnclearQuestions } from './unclear-questions.ts';

/**
 * States how a request of the server is attributed to a call. If it cannot be, nobody is asked.
 * - `lease`: the transport does not tell, as on stdio, so a session has at most one call at a time that may be asked
 *   something.
 * - `stream`: a request arrives on the stream of its call. A server that asks on a stream of no call is treated like
 *   one on stdio from then on.
 * - `none`: the transport does not tell, and all calls are in one process. A request is attributed only while one call
 *   is open.
 */
export type Attribution = 'lease' | 'stream' | 'none';

export interface SoleOwnerOptions {
  readonly clock: Clock;
  readonly attribution: Attribution;
  readonly capabilities: Fields;
  /** Headers of the caller's HTTP request that the user lets pass; see `Lane`. */
  readonly headers: Lane['headers'];
  /**
   * Called when the transport has turned out not to tell which call the server asks in: the server has asked outside
   * the streams of its calls, or the transport names no calls, as HTTP+SSE does.
   */
  readonly onUnplaced: () => void;
  /** Called when fewer calls are abandoned than before. */
  readonly onAbandonedLess: () => void;
  /** A child has answered the handshake. */
  readonly onServed: () => void;
  /** The child that served is gone. */
  readonly onLost: () => void;
}

/**
 * The policy of a session that serves one client only. Messages that name no owner pass, although they are hidden from
 * clients that share a server. A question of the server still goes only to the call that certainly caused it, and never
 * to a likely one: several calls of one name may be of several people, and an answer in the wrong call is a wrong
 * answer even for the same person. `attributeQuestion` has the rules; two calls are certainly of one client only if
 * they came over one connection.
 */
export class SoleOwner implements SharingPolicy {
  readonly passesUnowned = true;
  readonly lane: Lane;
  readonly roots: RootsQuestions;
  readonly elicitations: Elicitations;
  /**
   * The requests for the results of tasks, by the server's ids of the tasks. They are set and removed by whatever makes
   * them.
   */
  readonly tasks = new Map<JsonRpcId, Call>();
  readonly #state: LegacyState;
  readonly #options: SoleOwnerOptions;
  /** The questions that may belong to several calls; made for the first of them. */
  #unclear: UnclearQuestions | undefined = undefined;
  /** Keeps the log levels of users that have left; made for the first of them. */
  #levelHold: LevelHold | undefined = undefined;
  /** The capabilities that the server is told. Some revisions have no words for all that the client declares. */
  #declared: Fields;
  /** Grows whenever the server may have other tools than before. */
  #toolsVersion = 0;

  constructor(state: LegacyState, options: SoleOwnerOptions) {
    const { clock, capabilities, headers } = options;
    this.#state = state;
    this.#options = options;
    this.lane = { isOpen: true, headers };
    this.roots = new RootsQuestions(clock);
    this.elicitations = new Elicitations(clock);
    this.#declared = capabilities;
  }

  get capabilities(): Fields {
    return this.#declared;
  }

  get toolsVersion(): number {
    return this.#toolsVersion;
  }

  // ---- what the server asks

  ask(asked: ServerQuestion): BridgeError | undefined {
    const { link, question, refuse } = asked;
    const refusal = this.#refusalOf(question);
    if (refusal !== undefined) {
      link.send(errorFrame(question.id as JsonRpcId, refusal));
      return undefined;
    }
    const { lastId } = this.#state;
    const outcome = this.#ask(asked, lastId);
    if (outcome !== 'unclear') return outcome;
    const askAgain = (): boolean => {
      const later = this.#ask(asked, lastId);
      if (later instanceof BridgeError) refuse(later);
      return later !== 'unclear';
    };
    this.#unclear ??= new UnclearQuestions(this.#options.clock);
    return this.#unclear.hold(question, askAgain, () => refuse(UNCLEAR_CALL)) ? undefined : UNCLEAR_CALL;
  }

  /** Why nobody may be asked this, by what the client has declared. */
  #refusalOf({ bytes, method, payloadStart }: Frame): RpcError | undefined {
    const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
    return refuseInput(this.#options.capabilities, method ?? '', params);
  }

  /** An error: it may be of an abandoned call, and nobody will ever know. */
  #ask({ link, question, known }: ServerQuestion, lastId: number): BridgeError | 'unclear' | undefined {
    const owner = this.#callOf(question, known, lastId);
    if (owner === 'abandoned') return UNCLEAR_CALL;
    if (owner.kind === 'ambiguous') return 'unclear';
    // A call that cannot be answered with a question is as good as none.
    if (owner.kind === 'nobody' || owner.call === undefined || !isInteractive(owner.call.method)) {
      this.#takeOrphan(question, (answer) => void link.send(withId(answer, question.id as JsonRpcId)));
      return undefined;
    }
    return this.#state.ask(owner, question);
  }

  /** The call that is named, or the only one of those up to `lastId` that can be meant. */
  #callOf(question: Frame, known: Call | undefined, lastId: number): Owner | 'abandoned' {
    const { pendingCalls, abandoned } = this.#state;
    const taskId = findRelatedTask(question);
    if (taskId !== undefined) {
      const named = this.tasks.get(taskId);
      return (named && pendingCalls.ownerWithId(named.upstreamId)) ?? NOBODY;
    }
    if (known !== undefined && this.#options.attribution === 'stream')
      return pendingCalls.ownerWithId(known.id) ?? NOBODY;
    this.#options.onUnplaced();
    const owner = attributeQuestion({
      open: pendingCalls.where(({ call: { upstreamId, method } }) => upstreamId <= lastId && mayAsk(method)),
      abandoned: abandoned.askers(lastId),
      clientOf: ({ client }) => client.identity,
      askedIn: 'call',
    });
    switch (owner.kind) {
      case 'call':
        return { kind: 'one', client: owner.candidate.client, call: owner.candidate.call };
      case 'several':
        return { kind: 'ambiguous' };
      case 'abandoned':
        return 'abandoned';
      default:
        return NOBODY;
    }
  }

  /** No call is open that could be asked. `reply` is called once, or not at all. */
  #takeOrphan(question: Frame, reply: (answer: Frame) => void): void {
    switch (question.method) {
      case LIST_ROOTS:
        return this.roots.add(question, reply);
      case ELICIT:
        // The answer is that of a client whose user does not decide.
        return reply(resultFrame(0, { action: 'cancel' }));
      default:
        return reply(errorFrame(0, NO_CALL));
    }
  }

  questionWithdrawn(id: JsonRpcId): void {
    if (this.#unclear?.withdrawn(id) !== true) this.roots.withdrawn(id);
  }

  elicitationCompleted(elicitationId: string): void {
    this.elicitations.completed(elicitationId);
  }

  // ---- what the server says to nobody in particular

  /** The links are for what belongs to a call; what belongs to none has nobody to be told. */
  unnamedOwner(): Owner {
    return this.#state.pendingCalls.owner();
  }

  /** Among the calls of one caller, those that want no logs are not what makes it unclear. */
  logOwner(): Owner {
    const { pendingCalls, levels } = this.#state;
    return pendingCalls.ownerAmong((client) => levels.get(client) !== undefined);
  }

  /** Servers may give a part another name than the whole; one caller may be told too much, others may not. */
  watchersOf(uri: string): Iterable<LegacyClient> {
    const { subscriptions } = this.#state;
    const concerned = subscriptions.clientsFor(uri);
    return concerned.size > 0 ? concerned : subscriptions.clients();
  }

  levelUnwanted(level: LogLevel, link: UpstreamLink): void {
    this.#levelHold ??= new LevelHold(this.#state, this.#options.clock);
    this.#levelHold.keep(level, link);
  }

  listChanged(method: string | undefined): void {
    if (method === TOOLS_CHANGED) this.#toolsVersion += 1;
  }

  // ---- how calls end

  callAnswered(): void {
    this.#unclear?.look();
  }

  callAbandoned(): void {
    this.#unclear?.look();
  }

  abandonedAnswered(): void {
    this.#options.onAbandonedLess();
  }

  /** The caller is told that the server is gone, which is something else than an error of the server. */
  callLost({ client, call }: PendingCall, error: BridgeError): void {
    client.listener.serverFault({ error, kind: 'error', id: call.id });
  }

  // ---- the child's life

  redeclares({ protocolVersion }: InitializeResult): boolean {
    const revision = findRevision(protocolVersion)?.id;
    const corrected = revision && correctedDeclaration(this.#declared, revision);
    if (corrected === undefined) return false;
    this.#declared = corrected;
    return true;
  }

  served(): void {
    if (!this.#state.namesCalls) this.#options.onUnplaced();
    this.roots.served();
    this.#toolsVersion += 1;
    this.#options.onServed();
  }

  ended({ wasServing }: ServerEnd): void {
    this.#unclear?.clear();
    this.#levelHold?.stop();
    this.#options.onAbandonedLess();
    if (!wasServing) return;
    this.roots.lost();
    this.#options.onLost();
  }

  close(): void {
    this.roots.close();
    this.elicitations.close();
    this.#unclear?.clear();
    this.#levelHold?.stop();
  }
}

const NOBODY: Owner = { kind: 'nobody' };

const NO_CALL: RpcError = {
  code: INTERNAL_ERROR,
  message: 'no call of the client is open that this request could belong to',
};

const UNCLEAR_CALL = new BridgeError(
  'ERR_SHARED_AMBIGUOUS',
  'The request does not say which call it belongs to, and several open or abandoned calls are possible, so it is unclear which client to ask.',
);
