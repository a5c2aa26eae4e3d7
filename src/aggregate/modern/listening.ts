import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { isListChanged, LISTEN_ACKNOWLEDGED, RESOURCE_UPDATED } from '../../mcp/vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, readField } from '../../mcp/vocabulary/payload.ts';
import { editFrame, type Frame, type JsonRpcId } from '../../wire/frame.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { errorFrame, notificationFrame } from '../../wire/write-message.ts';
import type { Aggregate } from '../aggregate.ts';
import { MALFORMED } from '../answers.ts';
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
  readonly members: readonly Member[];
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
  #parts: readonly Part[] = [];
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
    if (filter === undefined) return sink.fromServer(errorFrame(this.#id, MALFORMED));
    void this.#open(filter);
  }

  /** Servers that have not agreed by now are subscribed to as soon as they do. */
  #acknowledge(): void {
    const state = this.#state;
    if (state.kind !== 'opening') return;
    state.cancel();
    for (const part of state.awaited) part.hasMissed = true;
    this.#state = { kind: 'listening' };
    const notifications = asFields(readField(this.#options.request, 'notifications')) ?? {};
    this.#tell(LISTEN_ACKNOWLEDGED, { notifications });
    for (const frame of state.early) this.#toClient(frame);
  }

  /** The server has agreed, or failed. */
  #settled(part: Part): void {
    if (this.#state.kind !== 'opening') return;
    this.#state.awaited.delete(part);
    if (this.#state.awaited.size === 0) this.#acknowledge();
  }

  async #open(filter: Fields): Promise<void> {
    const { viewer, members } = this.#options;
    const uris = textsOf(filter.resourceSubscriptions);
    const isUnlisted = uris.some((uri) => ownerOfUri(viewer.lists, members, uri).kind === 'unlisted');
    if (isUnlisted) await viewer.lists.load(members, [RESOURCES, TEMPLATES]);
    if (this.#state.kind === 'over') return;
    this.#parts = members.flatMap((member) => this.#partOf(member, filter, uris) ?? []);
    if (this.#parts.length === 0) return this.#acknowledge();
    for (const part of this.#parts) {
      if (this.#state.kind === 'opening') this.#state.awaited.add(part);
      else part.hasMissed = true;
    }
    for (const part of this.#parts) this.#listen(part);
  }

  /** Undefined: there is nothing to hear from this server. */
  #partOf(member: Member, filter: Fields, uris: readonly string[]): Part | undefined {
    const { viewer, members, request } = this.#options;
    const shownUris = new Map<string, string>();
    for (const shown of uris) {
      const owner = ownerOfUri(viewer.lists, members, shown);
      // Nobody knows whose a resource is that no server lists, so each may say what it knows of it.
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
    const filter = asFields(readField(this.#options.request, 'notifications')) ?? {};
    for (const { changed, capability } of LIST_KINDS) {
      if (filter[`${capability}ListChanged`] === true) this.#pacer.changed(changed);
    }
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
    for (const { call, cancel } of this.#parts) {
      cancel?.();
      call?.withdraw();
    }
  }

  stop(): void {
    for (const { call } of this.#parts) call?.stop();
  }

  goOn(): void {
    for (const { call } of this.#parts) call?.goOn();
  }
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return [...new Set(value.filter((text): text is string => typeof text === 'string'))].slice(0, MAX_NAMED);
}
