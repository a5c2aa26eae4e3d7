import { RecentNames } from '../../collections/bounded-collections.ts';
import { CellMap } from '../../collections/short-lived-values.ts';
import { BridgeError } from '../../errors.ts';
import { findCanceledId, findProgressOf, findRelatedTask } from '../../mcp/classify/correlators.ts';
import { parseLogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import {
  CALL_TOOL,
  CANCELED,
  INITIALIZE,
  INITIALIZED,
  isListChanged,
  PING,
  PROGRESS,
  RESOURCE_UPDATED,
  SET_LEVEL,
  SUBSCRIBE,
  TASK_STATUS,
  UNSUBSCRIBE,
} from '../../mcp/vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, readField, showText } from '../../mcp/vocabulary/payload.ts';
import { servedRevision } from '../../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { CallerEnvironment, LinkOwner, ServerListener, UpstreamLink } from '../../relay/ports.ts';
import type { SessionState } from '../../relay/sessions/session-state.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import { type Frame, idToken, type JsonRpcId, withId, withPayload } from '../../wire/frame.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { errorFrame, joinMembers, notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import { type Addressee, addresseeOf, findAddressee } from '../addressee.ts';
import type { Aggregate } from '../aggregate.ts';
import { isUnknownThere, MALFORMED, NO_SERVER } from '../answers.ts';
import { ChangePacer } from '../change-pacer.ts';
import { findText, withText } from '../edit-request.ts';
import { answerList } from '../list-answer.ts';
import { LIST_KINDS, type ListKind, listKindOf, TASKS } from '../lists.ts';
import type { ListSource, MemberLists } from '../member-lists.ts';
import type { Member } from '../members.ts';
import { readPrefixedUri, shownTaskId } from '../names.ts';
import { withLinks } from '../resource-links.ts';
import { laterUiUris } from '../routing.ts';
import type { ResultMembers } from '../search/search-tools.ts';
import { placesOf, type TaskPlaces, withTaskIds } from '../task-ids.ts';
import { type MemberLane, MemberSession, type MemberSessionOwner } from './member-session.ts';
import { QuestionTable } from './question-table.ts';

export interface AggregateSessionOptions {
  readonly aggregate: Aggregate;
  readonly principal: string | undefined;
  readonly environment: CallerEnvironment | undefined;
  readonly owner: LinkOwner;
  /** The state that another replica needs to go on with the session; undefined if the session is not stored. */
  readonly stored: SessionState | undefined;
}

/** A request that a server is working on. */
interface Sent {
  readonly call: Call;
  readonly session: MemberSession;
  readonly lane: MemberLane;
}

/**
 * A session of a legacy client with all servers. It is a link for the relay of its client, and a client of each server that
 * the session has needed so far. What concerns one server passes to that one, with the client's own id; the rest is answered
 * from what the servers have said.
 */
export class AggregateSession implements UpstreamLink, MemberSessionOwner, ListSource {
  listener: ServerListener | undefined;
  readonly principal: string | undefined;
  readonly environment: CallerEnvironment | undefined;
  readonly #aggregate: Aggregate;
  readonly #sessions = new Map<Member, MemberSession>();
  readonly #lists: MemberLists;
  readonly #pacer: ChangePacer;
  readonly #questions = new QuestionTable<MemberSession>();
  /** The calls of the client that servers work on. */
  readonly #sent = new CellMap<JsonRpcId, Sent>();
  readonly #stopHearing: () => void;
  #members: readonly Member[];
  #introduction: Buffer = Buffer.from('{}');
  #level: string | undefined;
  #headers: Lane['headers'];
  readonly #stored: SessionState | undefined;
  /** The tasks of the client, by their ids, and the servers that have asked for them. */
  readonly #clientTasks = new RecentNames<MemberSession>({ count: 1000, length: 64 * 1024 });
  #isPaused = false;
  #isClosed = false;

  constructor({ aggregate, principal, environment, owner, stored }: AggregateSessionOptions) {
    this.#aggregate = aggregate;
    this.principal = principal;
    this.environment = environment;
    this.listener = owner;
    this.#members = aggregate.membersFor(principal);
    this.#pacer = new ChangePacer(aggregate.deps.clock, (method) => this.#toClient(notificationFrame(method)));
    this.#lists = aggregate.listsFor(this, ({ changed }) => changed !== undefined && this.#pacer.changed(changed));
    this.#stopHearing = aggregate.members.onChange(() => this.#membersChanged());
    this.#stored = stored;
    if (stored?.initialize !== undefined) this.#goOn(stored, stored.initialize);
  }

  /** Goes on with a session that has begun at another replica. The servers are asked for anew when they are needed. */
  #goOn(stored: SessionState, initialize: Fields): void {
    this.#introduction = encodeJson(initialize);
    for (const { method, params } of stored.wishes()) {
      if (method === SET_LEVEL) this.#level = params.level;
      else void this.#watchAgain(params.uri);
    }
  }

  async #watchAgain(uri: string): Promise<void> {
    const request = requestFrame(0, SUBSCRIBE, { uri });
    const addressee = await findAddressee(request, this.#lists, this.#members);
    if (addressee.kind !== 'one' || this.#isClosed) return;
    const session = this.#sessionOf(addressee.member);
    session.watch(addressee.own, uri);
    await session.open();
  }

  /** The servers may have processes; the aggregate has none. */
  get process(): undefined {
    return undefined;
  }

  // ---- from the client

  send(frame: Frame, call?: Call): boolean {
    switch (frame.kind) {
      case 'request':
        if (call !== undefined) this.#request(frame, call);
        break;
      case 'notification':
        this.#notification(frame, call);
        break;
      default:
        this.#answered(frame);
    }
    return true;
  }

  #request(frame: Frame, call: Call): void {
    this.#headers = call.lane.headers;
    switch (call.method) {
      case INITIALIZE:
        return this.#initialize(frame, call);
      case PING:
        return this.#answer(call, resultFrame(call.id, {}));
      case SET_LEVEL:
        return this.#setLevel(frame, call);
    }
    const kind = listKindOf(call.method);
    if (kind !== undefined) return void this.#list(frame, call, kind);
    const taken = this.#aggregate.search?.take(frame, { lists: this.#lists, members: this.#members });
    if (taken?.kind === 'answered') void this.#answerSearch(call, taken.result);
    else this.#find(taken?.frame ?? frame, call);
  }

  #find(frame: Frame, call: Call): void {
    this.#pass(frame, call, addresseeOf(frame, this.#lists, this.#members));
  }

  async #answerSearch(call: Call, result: () => Promise<ResultMembers>): Promise<void> {
    this.#answer(call, withPayload(resultFrame(call.id, {}), joinMembers(await result())));
  }

  #initialize(frame: Frame, call: Call): void {
    const { payloadStart, bytes } = frame;
    if (payloadStart !== -1)
      this.#introduction = Buffer.from(bytes.subarray(payloadStart, skipValue(bytes, payloadStart)));
    const revision = servedRevision(readField(frame, 'protocolVersion'));
    const answer = resultFrame(call.id, this.#aggregate.offer(this.#members, revision));
    if (this.#stored !== undefined) {
      // Any replica can go on with the session, which is nowhere but in what is stored.
      this.#stored.continuation = 'same-session';
      this.#stored.succeeded(frame, answer);
    }
    this.#answer(call, answer);
  }

  /** Servers that are not there yet get the level when they are. */
  #setLevel(frame: Frame, call: Call): void {
    const level = parseLogLevel(readField(frame, 'level'));
    if (level === undefined) return this.#refuse(call, WRONG_LEVEL);
    this.#level = level;
    for (const session of this.#sessions.values()) {
      if (session.isOpen && session.has('logging')) void session.ask(SET_LEVEL, { level });
    }
    const answer = resultFrame(call.id, {});
    this.#stored?.succeeded(frame, answer);
    this.#answer(call, answer);
  }

  // ---- lists

  async #list(request: Frame, call: Call, kind: ListKind): Promise<void> {
    // Only a server with a session has tasks of this client.
    const members = this.#members.filter((member) => kind !== TASKS || this.#sessions.get(member)?.isOpen === true);
    const answer = await answerList({ aggregate: this.#aggregate, lists: this.#lists, members, kind, request });
    if (Buffer.isBuffer(answer)) this.#answer(call, withPayload(resultFrame(call.id, {}), answer));
    else this.#refuse(call, answer);
  }

  async ask(member: Member, kind: ListKind, cursor: string | undefined): Promise<Frame> {
    const session = this.#sessionOf(member);
    const params = cursor === undefined ? {} : { cursor };
    // The answer to the handshake says if the server has such a list.
    const failure = await session.open();
    if (failure !== undefined) throw failure;
    return session.has(kind.capability) ? session.ask(kind.method, params) : NO_SUCH_LIST;
  }

  /** A server that does not say when its list changes is asked each time. */
  expiryOf(member: Member, kind: ListKind): number {
    const session = this.#sessions.get(member);
    if (session?.offer === undefined || !session.has(kind.capability)) return Number.POSITIVE_INFINITY;
    const tells = asFields(session.offer.capabilities[kind.capability])?.listChanged === true;
    return tells ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  }

  // ---- requests for one server

  #pass(frame: Frame, call: Call, addressee: Addressee): void {
    switch (addressee.kind) {
      case 'one':
        return this.#sendTo(addressee.member, addressee.frame, call, (answer) => {
          if (answer.kind === 'result') this.#granted(frame, addressee);
          this.#answer(call, answer);
        });
      case 'unlisted':
        return void findAddressee(frame, this.#lists, this.#members).then((found) => {
          if (call.state.kind === 'open') this.#pass(frame, call, found);
        });
      case 'any':
        return void this.#askInOrder(frame, call);
      case 'unknown': {
        const { list, name } = addressee;
        return this.#refuse(call, this.#aggregate.unknownName(this.#lists, this.#members, list, name));
      }
      case 'malformed':
        return this.#refuse(call, MALFORMED);
    }
  }

  /** The server has agreed to what is to be repeated when it has ended. */
  #granted(request: Frame, { member, own }: Addressee & { readonly kind: 'one' }): void {
    if (request.method !== SUBSCRIBE && request.method !== UNSUBSCRIBE) return;
    const session = this.#sessionOf(member);
    if (request.method === SUBSCRIBE) session.watch(own, findText(request, 'uri')?.value ?? own);
    else session.unwatch(own);
    this.#stored?.succeeded(request, request);
  }

  /** Sends the request to one server after the other, until one knows what is asked for. */
  async #askInOrder(frame: Frame, call: Call): Promise<void> {
    let last: Frame | undefined;
    for (const member of this.#members) {
      if (call.state.kind !== 'open') return;
      const answer = await new Promise<Frame>((resolve) => this.#sendTo(member, frame, call, resolve));
      if (answer.kind === 'result') return this.#answer(call, answer);
      last = answer;
      if (!isUnknownThere(answer)) break;
    }
    if (last === undefined) this.#refuse(call, NO_SERVER);
    else this.#answer(call, last);
  }

  #sendTo(member: Member, frame: Frame, call: Call, answered: (answer: Frame) => void): void {
    const session = this.#sessionOf(member);
    const lane = session.laneFor(call, (answer) => {
      this.#sent.delete(call.id);
      const shown = this.#shown(session, answer, placesOf(call.method, answer));
      answered(
        call.method === CALL_TOOL ? withLinks(shown, member, laterUiUris(this.#lists, this.#members, member)) : shown,
      );
    });
    this.#sent.set(call.id, { call, session, lane });
    session.request(frame, lane);
  }

  #sessionOf(member: Member): MemberSession {
    let session = this.#sessions.get(member);
    if (session === undefined) {
      session = new MemberSession(member, this, this.#aggregate.deps);
      this.#sessions.set(member, session);
    }
    return session;
  }

  #answer(call: Call, answer: Frame): void {
    if (call.state.kind !== 'open') return;
    this.listener?.fromServer(answer.id === call.id ? answer : withId(answer, call.id), call);
  }

  #refuse(call: Call, error: RpcError): void {
    this.#answer(call, errorFrame(call.id, error));
  }

  // ---- notifications and answers of the client

  #notification(frame: Frame, call: Call | undefined): void {
    switch (frame.method) {
      case INITIALIZED:
        // Each server gets its own, after its own handshake.
        return;
      case CANCELED: {
        const sent = call && this.#sent.get(call.id);
        if (call === undefined || sent === undefined) return;
        this.#sent.delete(call.id);
        return sent.session.tell(frame, sent.lane);
      }
      case PROGRESS: {
        const token = findProgressOf(frame)?.value;
        const progress = token === undefined ? undefined : this.#questions.progress(frame, token);
        return progress?.asker.tell(progress.frame);
      }
      case TASK_STATUS:
        return this.#clientTasks.get(showText(readField(frame, 'taskId')))?.tell(frame);
    }
    for (const session of this.#sessions.values()) if (session.isOpen) session.tell(frame);
  }

  #answered(frame: Frame): void {
    const answered = this.#questions.answer(frame);
    if (answered === undefined) return;
    const { asker } = answered;
    const task = asFields(frame.kind === 'result' && asker.has('tasks') ? readField(frame, 'task') : undefined);
    if (typeof task?.taskId === 'string') this.#clientTasks.set(task.taskId, asker);
    asker.tell(this.#own(asker, answered.frame));
  }

  // ---- from the servers

  get introduction(): Buffer {
    return this.#introduction;
  }

  get level(): string | undefined {
    return this.#level;
  }

  get headers(): Lane['headers'] {
    return this.#headers;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  opened({ member }: MemberSession, offer: InitializeResult): void {
    this.#aggregate.answered(member);
    this.#aggregate.known.note(member, offer);
  }

  /** The next list asks the server again, which may have become another one. */
  ended(session: MemberSession): void {
    for (const requestId of this.#questions.takeOf(session)) {
      this.#toClient(notificationFrame(CANCELED, { requestId, reason: 'the server is gone' }));
    }
    for (const kind of LIST_KINDS) {
      if (!this.#lists.isFresh(session.member, kind)) continue;
      this.#lists.changed(session.member, kind);
      if ((this.#lists.itemsOf(session.member, kind)?.length ?? 0) > 0) this.#pacer.changed(kind.changed);
    }
  }

  drained(): void {
    this.listener?.serverDrained();
  }

  fromMember(session: MemberSession, frame: Frame, outer: Call | undefined): void {
    if (frame.kind === 'request') return this.#ask(session, frame, outer);
    if (isListChanged(frame.method)) return this.#listChanged(session, frame.method as string);
    if (frame.method === CANCELED) {
      const id = findCanceledId(frame)?.value;
      const withdrawn = id === undefined ? undefined : this.#questions.withdrawn(session, frame, id);
      if (withdrawn !== undefined) this.#toClient(withdrawn, outer);
      return;
    }
    // A server knows only the tokens of its own calls, and may tell only of these.
    if (frame.method === PROGRESS && outer === undefined && findRelatedTask(frame) === undefined) {
      const token = findProgressOf(frame)?.value;
      if (!this.#hasToken(session, token) && !session.has('tasks')) return;
    }
    const uri = frame.method === RESOURCE_UPDATED ? findText(frame, 'uri') : undefined;
    const named = uri === undefined ? frame : withText(frame, uri, session.shownUri(uri.value));
    this.#toClient(this.#shown(session, named, placesOf(frame.method ?? '', undefined)), outer);
  }

  #hasToken(session: MemberSession, token: JsonRpcId | undefined): boolean {
    for (const sent of this.#sent.values()) {
      if (sent.session === session && sent.call.progressToken === token) return true;
    }
    return false;
  }

  #ask(session: MemberSession, question: Frame, outer: Call | undefined): void {
    const asked = this.#questions.ask(session, this.#shown(session, question, 'about'));
    if (asked instanceof BridgeError) session.tell(errorFrame(idToken(question), rpcErrorOf(asked)));
    else this.#toClient(asked, outer);
  }

  #listChanged({ member }: MemberSession, method: string): void {
    for (const kind of LIST_KINDS) if (kind.changed === method) this.#lists.changed(member, kind);
    this.#pacer.changed(method);
  }

  #shown(session: MemberSession, frame: Frame, places: TaskPlaces): Frame {
    const { member } = session;
    return session.has('tasks') ? withTaskIds(frame, places, (id) => shownTaskId(member, id)) : frame;
  }

  /** Restores the server's own ids of tasks in an answer of the client. */
  #own({ member }: MemberSession, frame: Frame): Frame {
    return withTaskIds(frame, 'about', (id) => readPrefixedUri([member], id)?.own);
  }

  #toClient(frame: Frame, call?: Call): void {
    if (!this.#isClosed) this.listener?.fromServer(frame, call?.state.kind === 'open' ? call : undefined);
  }

  // ---- changes of the configuration

  #membersChanged(): void {
    const before = this.#members;
    this.#members = this.#aggregate.membersFor(this.principal);
    for (const [member, session] of this.#sessions) {
      if (this.#members.includes(member)) continue;
      this.#sessions.delete(member);
      session.end(REMOVED);
      this.ended(session);
    }
    this.#lists.keepOnly(this.#members);
    const isSame = before.length === this.#members.length && before.every((member, at) => member === this.#members[at]);
    if (isSame) return;
    for (const method of new Set(LIST_KINDS.map(({ changed }) => changed))) this.#pacer.changed(method);
  }

  // ---- for the relay

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    for (const session of this.#sessions.values()) session.clientDrained();
  }

  close(reason: BridgeError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopHearing();
    this.#pacer.stop();
    for (const session of this.#sessions.values()) session.end(reason);
    this.#sent.clear();
  }
}

const NO_SUCH_LIST = errorFrame(0, { code: METHOD_NOT_FOUND, message: 'The server has no such list.' });
const REMOVED = new BridgeError(
  'ERR_SESSION_CLOSED',
  'The configuration of this server has changed, or it was removed from the aggregate; ask for the list again.',
);
const WRONG_LEVEL: RpcError = {
  code: INVALID_PARAMS,
  message: 'The level is none; use debug, info, notice, warning, error, critical, alert or emergency.',
};
