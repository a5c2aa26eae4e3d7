import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { discoverResult } from '../../mcp/translate/results.ts';
import { META_SERVER_INFO } from '../../mcp/vocabulary/meta.ts';
import { CALL_TOOL, DISCOVER, isModernRequest, LISTEN } from '../../mcp/vocabulary/methods.ts';
import { LATEST_LEGACY_REVISION } from '../../mcp/vocabulary/revisions.ts';
import { METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import { TASKS_EXTENSION } from '../../mcp/vocabulary/task-extension.ts';
import { type Frame, type JsonRpcId, withPayload } from '../../wire/frame.ts';
import { errorFrame, joinMembers, resultFrame } from '../../wire/write-message.ts';
import { type Addressee, addresseeOf, findAddressee } from '../addressee.ts';
import type { Aggregate } from '../aggregate.ts';
import { isUnknownThere, MALFORMED, NO_SERVER } from '../answers.ts';
import { answerList } from '../list-answer.ts';
import { type ListKind, listKindOf } from '../lists.ts';
import type { Member } from '../members.ts';
import { shownTaskId } from '../names.ts';
import { withLinks } from '../resource-links.ts';
import { laterUiUris } from '../routing.ts';
import type { ResultMembers } from '../search/search-tools.ts';
import { placesOf, withTaskIds } from '../task-ids.ts';
import { Listening } from './listening.ts';
import { MemberCall, type ModernCaller, type RequestSink } from './member-call.ts';
import type { Viewer } from './viewer.ts';

export interface AggregateRequestOptions {
  readonly aggregate: Aggregate;
  readonly viewer: Viewer;
  readonly caller: ModernCaller;
  readonly metadata: RequestMetadata;
  readonly frame: Frame;
  readonly sink: RequestSink;
}

/** A request of a modern client to all servers: it passes to the one it is for, or is answered from what several say. */
export class AggregateRequest {
  readonly #options: AggregateRequestOptions;
  readonly #id: JsonRpcId;
  /** The call or the subscription that works on the request now. */
  #work: Pick<MemberCall, 'withdraw' | 'stop' | 'goOn' | 'isFull'> | undefined;

  constructor(options: AggregateRequestOptions) {
    this.#options = options;
    this.#id = options.frame.id as JsonRpcId;
  }

  /** Called once. The request may be answered at once. Returns false if its server is full. */
  start(): boolean {
    const { frame } = this.#options;
    const method = frame.method ?? '';
    const kind = listKindOf(method);
    if (!isModernRequest(method)) this.#refuse(GONE);
    else if (method === DISCOVER) this.#discover();
    else if (method === LISTEN) this.#listen();
    else if (kind !== undefined) void this.#list(kind);
    else this.#call();
    return this.#work?.isFull !== true;
  }

  withdraw(): void {
    this.#work?.withdraw();
  }

  pause(): void {
    this.#work?.stop();
  }

  resume(): void {
    this.#work?.goOn();
  }

  #members(): readonly Member[] {
    const { aggregate, caller } = this.#options;
    return aggregate.membersFor(caller.principal);
  }

  #discover(): void {
    const offer = this.#options.aggregate.offer(this.#members(), LATEST_LEGACY_REVISION);
    this.#answer(resultFrame(this.#id, discoverResult(offer, { extensions: { [TASKS_EXTENSION]: {} } })));
  }

  #listen(): void {
    const { aggregate, viewer, caller, metadata, frame, sink } = this.#options;
    const listening = new Listening({ aggregate, viewer, caller, metadata, request: frame, sink });
    this.#work = listening;
    listening.start();
  }

  async #list(kind: ListKind): Promise<void> {
    const { aggregate, viewer, frame: request } = this.#options;
    const members = this.#members();
    const answer = await answerList({ aggregate, lists: viewer.lists, members, kind, request }, this.#listMembers());
    if (Buffer.isBuffer(answer)) this.#answer(withPayload(resultFrame(this.#id, {}), answer));
    else this.#refuse(answer);
  }

  /** Each server's list is remembered for as long as that server says, and not by the client. */
  #listMembers(): object {
    return {
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { [META_SERVER_INFO]: this.#options.aggregate.info },
    };
  }

  async #answerSearch(result: () => Promise<ResultMembers>): Promise<void> {
    const members = new Map([...(await result()), ['resultType', COMPLETE]]);
    this.#answer(withPayload(resultFrame(this.#id, {}), joinMembers(members)));
  }

  #call(): void {
    const { aggregate, viewer, frame } = this.#options;
    const taken = aggregate.search?.take(frame, { lists: viewer.lists, members: this.#members() });
    if (taken?.kind === 'answered') void this.#answerSearch(taken.result);
    else this.#find(taken?.frame ?? frame);
  }

  #find(frame: Frame): void {
    this.#pass(frame, addresseeOf(frame, this.#options.viewer.lists, this.#members()));
  }

  #pass(frame: Frame, addressee: Addressee): void {
    const { aggregate, viewer, sink } = this.#options;
    const members = this.#members();
    switch (addressee.kind) {
      case 'one':
        return this.#sendTo(addressee.member, addressee.frame, (answer) => this.#answer(answer));
      case 'unlisted':
        return void findAddressee(frame, viewer.lists, members).then((found) => {
          if (sink.isOpen) this.#pass(frame, found);
        });
      case 'any':
        return void this.#askInOrder(frame, members);
      case 'unknown': {
        const { list, name } = addressee;
        return this.#refuse(aggregate.unknownName(viewer.lists, members, list, name));
      }
      case 'malformed':
        return this.#refuse(MALFORMED);
    }
  }

  /** Sends the request to one server after the other, until one knows what is asked for. */
  async #askInOrder(frame: Frame, members: readonly Member[]): Promise<void> {
    const { sink } = this.#options;
    let last: Frame | undefined;
    for (const member of members) {
      if (!sink.isOpen) return;
      const answer = await new Promise<Frame>((resolve) => this.#sendTo(member, frame, resolve));
      if (answer.kind === 'result') return this.#answer(answer);
      last = answer;
      if (!isUnknownThere(answer)) break;
    }
    if (last === undefined) this.#refuse(NO_SERVER);
    else this.#answer(last);
  }

  #sendTo(member: Member, frame: Frame, answered: (answer: Frame) => void): void {
    const { viewer, caller, metadata, sink } = this.#options;
    viewer.used.add(member);
    const call = new MemberCall({
      member,
      caller,
      metadata,
      told: (told) => {
        const shown = this.#shown(member, told);
        if (told.isResponse) answered(this.#withLinks(member, shown));
        else sink.fromServer(shown);
      },
      drained: () => sink.serverDrained(),
    });
    this.#work = call;
    call.start(frame);
  }

  /** A server has tasks only for a client that declares them. */
  #shown(member: Member, told: Frame): Frame {
    const { viewer, frame } = this.#options;
    if (!viewer.declaresTasks) return told;
    const places = placesOf(told.method ?? frame.method ?? '', told.isResponse ? told : undefined);
    return withTaskIds(told, places, (id) => shownTaskId(member, id));
  }

  #withLinks(member: Member, answer: Frame): Frame {
    const { viewer, frame } = this.#options;
    if (frame.method !== CALL_TOOL) return answer;
    return withLinks(answer, member, laterUiUris(viewer.lists, this.#members(), member));
  }

  #answer(answer: Frame): void {
    if (this.#options.sink.isOpen) this.#options.sink.fromServer(answer);
  }

  #refuse(error: RpcError): void {
    this.#answer(errorFrame(this.#id, error));
  }
}

const COMPLETE = Buffer.from('"complete"');

const GONE: RpcError = { code: METHOD_NOT_FOUND, message: 'This revision has no such request.' };
