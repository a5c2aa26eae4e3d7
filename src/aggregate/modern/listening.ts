import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { isListChanged, LISTEN_ACKNOWLEDGED, RESOURCE_UPDATED } from '../../mcp/vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, readField } from '../../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import { editFrame, type Frame, type JsonRpcId } from '../../wire/frame.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { errorFrame, notificationFrame } from '../../wire/write-message.ts';
import type { Aggregate } from '../aggregate.ts';
import { ChangePacer } from '../change-pacer.ts';
import { findText, withText } from '../edit-request.ts';
import { LIST_KINDS, RESOURCES, TEMPLATES } from '../lists.ts';
import type { Member } from '../members.ts';
import { readPrefixedUri, shownTaskId } from '../names.ts';
import { ownerOfUri } from '../routing.ts';
import { placesOf, withTaskIds } from '../task-ids.ts';
import { MemberCall, type ModernCaller, type RequestSink } from './member-call.ts';
import type { Viewer } from './viewer.ts';

/** Pauses before a subscription is opened again at a server that has ended it. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Resources and tasks that one subscription may name. */
const MAX_NAMED = 10_000;
/** The client learns what it is subscribed to when the servers have said so, or after this time. */
const ACKNOWLEDGE_MS = 5000;
/** Messages that wait until then. If there are more, the client is told at once. */
const MAX_EARLY = 1000;

export interface ListeningOptions {
  readonly aggregate: Aggregate;
  readonly viewer: Viewer;
  readonly caller: ModernCaller;
  readonly metadata: RequestMetadata;
  /** The `subscriptions/listen` of the client. */
  readonly request: Frame;
  readonly sink: RequestSink;
}

/** The part of a subscription that is at one server. */
interface Part {
  readonly member: Member;
  readonly request: Frame;
  /** The URIs that the client knows, by the server's own. */
  readonly shownUris: ReadonlyMap<string, string>;
  call: MemberCall | undefined;
  pauseMs: number;
  cancel: (() => void) | undefined;
  /** True if changes may have been missed at this server, which the client is told when it has agreed. */
  hasMissed: boolean;
}

/**
 * - `opening`: the servers are asked. The acknowledgment must be the first message, so others wait.
 * - `listening`: the client knows what it will hear of.
 * - `over`: for good.
 */
type ListeningState =
  | { readonly kind: 'opening'; readonly awaited: Set<Part>; readonly early: Frame[]; readonly cancel: () => void }
  | { readonly kind: 'listening' }
  | { readonly kind: 'over' };

/** A `subscriptions/listen` at all servers, each of which is asked for its own resources and tasks. */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #id: JsonRpcId;
  readonly #pacer: ChangePacer;
  /** The list changes that the client asked for. */
  #wantedChanges: readonly string[] = [];
  #filter: Fields = {};
  #parts: readonly Part[] = [];
  #stopHearing: () => void = () => {};
  #state: ListeningState;
  readonly isFull = false;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.#id = options.request.id as JsonRpcId;
    const { clock } = options.aggregate.deps;
    this.#pacer = new ChangePacer(clock, (method) => this.#tell(method, {}));
    const cancel = clock.after(ACKNOWLEDGE_MS, () => this.#acknowledge());
    this.#state = { kind: 'opening', awaited: new Set(), early: [], cancel };
  }

  start(): void {
    const { request, sink } = this.#options;
    const filter = asFields(readField(request, 'notifications'));
    if (filter === undefined) {
      this.withdraw();
      return sink.fromServer(errorFrame(this.#id, NO_FILTER));
    }
    this.#filter = filter;
    const wanted = LIST_KINDS.filter(({ capability }) => filter[`${capability}ListChanged`] === true);
    this.#wantedChanges = [...new Set(wanted.map(({ changed }) => changed))];
    const { aggregate, viewer } = this.#options;
    const stopHearing = [
      aggregate.members.onChange(() => this.#membersChanged()),
      viewer.onLate(({ changed }) => changed !== undefined && this.#tellChanged(changed)),
    ];
    this.#stopHearing = () => {
      for (const stop of stopHearing) stop();
    };
    void this.#open(this.#members());
  }

  #members(): readonly Member[] {
    const { aggregate, caller } = this.#options;
    return aggregate.membersFor(caller.principal);
  }

  #tellChanged(method: string): void {
    if (this.#wantedChanges.includes(method)) this.#pacer.changed(method);
  }

  /** Servers were added or removed, which changes all lists. */
  #membersChanged(): void {
    if (this.#state.kind === 'over') return;
    const members = this.#members();
    for (const part of this.#parts) if (!members.includes(part.member)) leave(part);
    this.#parts = this.#parts.filter(({ member }) => members.includes(member));
    const added = members.filter((member) => !this.#parts.some((part) => part.member === member));
    for (const method of this.#wantedChanges) this.#tellChanged(method);
    void this.#open(added);
  }

  /** Servers that have not agreed by now are subscribed to as soon as they do. */
  #acknowledge(): void {
    const state = this.#state;
    if (state.kind !== 'opening') return;
    state.cancel();
    for (const part of state.awaited) part.hasMissed = true;
    this.#state = { kind: 'listening' };
    this.#tell(LISTEN_ACKNOWLEDGED, { notifications: this.#filter });
    for (const frame of state.early) this.#toClient(frame);
  }

  /** The server has agreed, or failed. */
  #settled(part: Part): void {
    if (this.#state.kind !== 'opening') return;
    this.#state.awaited.delete(part);
    if (this.#state.awaited.size === 0) this.#acknowledge();
  }

  /** Subscribes at these servers. */
  async #open(opened: readonly Member[]): Promise<void> {
    const { viewer } = this.#options;
    const filter = this.#filter;
    const members = this.#members();
    const uris = textsOf(filter.resourceSubscriptions);
    const isUnlisted = uris.some((uri) => ownerOfUri(viewer.lists, members, uri).kind === 'unlisted');
    if (isUnlisted) await viewer.lists.load(members, [RESOURCES, TEMPLATES]);
    if (this.#state.kind === 'over') return;
    // Servers may have come and gone while the lists were read.
    const isNew = (member: Member): boolean => !this.#parts.some((part) => part.member === member);
    const wanted = opened.filter((member) => isNew(member) && this.#members().includes(member));
    const parts = wanted.flatMap((member) => this.#partOf(member, filter, uris) ?? []);
    this.#parts = [...this.#parts, ...parts];
    if (this.#parts.length === 0) return this.#acknowledge();
    for (const part of parts) {
      if (this.#state.kind === 'opening') this.#state.awaited.add(part);
      else part.hasMissed = true;
    }
    for (const part of parts) this.#listen(part);
  }

  /** Undefined: there is nothing to hear from this server. */
  #partOf(member: Member, filter: Fields, uris: readonly string[]): Part | undefined {
    const { viewer, request } = this.#options;
    const members = this.#members();
    const shownUris = new Map<string, string>();
    for (const shown of uris) {
      const owner = ownerOfUri(viewer.lists, members, shown);
      // A resource that no server lists may be any server's, so each of them is asked for it.
      if (owner.kind !== 'found') shownUris.set(shown, shown);
      else if (owner.member === member) shownUris.set(owner.own, shown);
    }
    const taskIds = textsOf(filter.taskIds).flatMap((id) => readPrefixedUri([member], id)?.own ?? []);
    const { resourceSubscriptions: _uris, taskIds: _ids, ...lists } = filter;
    const own = {
      ...lists,
      ...(shownUris.size > 0 && { resourceSubscriptions: [...shownUris.keys()] }),
      ...(taskIds.length > 0 && { taskIds }),
    };
    const place = findUnmistakable(request, request.payloadStart, 'notifications');
    if (Object.keys(own).length === 0 || typeof place !== 'object') return undefined;
    const edited = editFrame(request, [{ ...place, replacement: encodeJson(own) }]);
    return {
      member,
      request: edited,
      shownUris,
      call: undefined,
      pauseMs: FIRST_PAUSE_MS,
      cancel: undefined,
      hasMissed: false,
    };
  }

  #listen(part: Part): void {
    const { caller, metadata, viewer } = this.#options;
    const { member, request } = part;
    viewer.used.add(member);
    part.call = new MemberCall({
      member,
      caller,
      metadata,
      told: (frame) => {
        if (frame.isResponse) this.#ended(part);
        else this.#heard(part, frame);
      },
      drained: () => {},
    });
    part.call.start(request);
  }

  /** Asks again after a while, and then tells the client that it may have missed changes. */
  #ended(part: Part): void {
    if (this.#state.kind === 'over') return;
    part.call = undefined;
    part.hasMissed = true;
    this.#settled(part);
    part.cancel = this.#options.aggregate.deps.clock.after(part.pauseMs, () => {
      part.pauseMs = Math.min(2 * part.pauseMs, LONGEST_PAUSE_MS);
      this.#listen(part);
    });
  }

  #heard(part: Part, frame: Frame): void {
    const { member, shownUris } = part;
    const { viewer } = this.#options;
    if (frame.method === LISTEN_ACKNOWLEDGED) {
      part.pauseMs = FIRST_PAUSE_MS;
      if (part.hasMissed) this.#missed(part);
      part.hasMissed = false;
      return this.#settled(part);
    }
    if (isListChanged(frame.method)) {
      for (const kind of LIST_KINDS) if (kind.changed === frame.method) viewer.lists.changed(member, kind);
      return this.#pacer.changed(frame.method as string);
    }
    const uri = frame.method === RESOURCE_UPDATED ? findText(frame, 'uri') : undefined;
    const shown = uri && shownUris.get(uri.value);
    const named = uri === undefined || shown === undefined ? frame : withText(frame, uri, shown);
    const places = placesOf(frame.method ?? '', undefined);
    this.#toClient(withTaskIds(named, places, (id) => shownTaskId(member, id)));
  }

  #missed({ shownUris }: Part): void {
    for (const method of this.#wantedChanges) this.#tellChanged(method);
    for (const uri of shownUris.values()) this.#tell(RESOURCE_UPDATED, { uri });
  }

  #tell(method: string, params: object): void {
    this.#toClient(notificationFrame(method, { ...params, _meta: { [META_SUBSCRIPTION_ID]: this.#id } }));
  }

  #toClient(frame: Frame): void {
    const state = this.#state;
    if (state.kind === 'listening') this.#options.sink.fromServer(frame);
    if (state.kind !== 'opening') return;
    state.early.push(frame);
    if (state.early.length >= MAX_EARLY) this.#acknowledge();
  }

  // ---- from the client

  withdraw(): void {
    if (this.#state.kind === 'opening') this.#state.cancel();
    this.#state = { kind: 'over' };
    this.#pacer.stop();
    this.#stopHearing();
    for (const part of this.#parts) leave(part);
  }

  stop(): void {
    for (const { call } of this.#parts) call?.stop();
  }

  goOn(): void {
    for (const { call } of this.#parts) call?.goOn();
  }
}

function leave({ call, cancel }: Part): void {
  cancel?.();
  call?.withdraw();
}

const NO_FILTER: RpcError = {
  code: INVALID_PARAMS,
  message: 'The request does not say what to listen to: params.notifications is missing, or is no object.',
};

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return [...new Set(value.filter((text): text is string => typeof text === 'string'))].slice(0, MAX_NAMED);
}
