import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import type { ListenFilter } from '../../mcp/translate/listen-filter.ts';
import { LISTEN, LISTEN_ACKNOWLEDGED } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import type { Asker, UpstreamRequests } from './upstream-requests.ts';

/** Receives the messages of a subscription. */
export interface ListenOwner {
  /** Called with the first message of a stream. */
  acknowledged(stream: ServerSubscription, frame: Frame): void;
  changed(stream: ServerSubscription, frame: Frame): void;
  /**
   * Called when the server or the link has ended the stream: with a result, with an error, or by withdrawing it
   * (undefined).
   */
  ended(stream: ServerSubscription, answer: Frame | undefined): void;
}

/** One `subscriptions/listen` request to the server. */
export class ServerSubscription implements Asker {
  /** The changes that were asked for. */
  readonly asked: ListenFilter;
  readonly #owner: ListenOwner;
  readonly #requests: UpstreamRequests;
  #sent: Call | undefined;
  #isAcknowledged = false;

  constructor(owner: ListenOwner, requests: UpstreamRequests, asked: ListenFilter) {
    this.#owner = owner;
    this.#requests = requests;
    this.asked = asked;
  }

  open(metadata: RequestMetadata, lane: Lane): void {
    const frame = stampMetadata(requestFrame(0, LISTEN, { notifications: filterParams(this.asked) }), metadata);
    this.#sent = this.#requests.open(this, frame, lane);
    this.#requests.send(frame, this.#sent);
  }

  /** Ends the subscription. Its owner is called no more. */
  close(): void {
    if (this.#sent !== undefined) this.#requests.cancel(this.#sent, 'another subscription took its place');
  }

  answered(frame: Frame): void {
    this.#owner.ended(this, frame);
  }

  /** The second way in which a server ends a subscription. [spec 2026-07-28 basic/patterns/cancellation] */
  withdrawn(): void {
    this.#owner.ended(this, undefined);
  }

  notified(frame: Frame): void {
    if (frame.method !== LISTEN_ACKNOWLEDGED) return this.#owner.changed(this, frame);
    // A second acknowledgment comes if the link below has opened the subscription again.
    if (this.#isAcknowledged) return;
    this.#isAcknowledged = true;
    this.#owner.acknowledged(this, frame);
  }
}

// ---- Sets of changes that a client wants to be notified of: the filter of one `subscriptions/listen`.

const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;

export type ListFlags = Omit<ListenFilter, 'resourceSubscriptions'>;

/** Returns the lists whose changes a server with these capabilities announces. */
export function announcedLists(capabilities: Fields): ListFlags {
  return {
    toolsListChanged: isSet(capabilities.tools, 'listChanged'),
    promptsListChanged: isSet(capabilities.prompts, 'listChanged'),
    resourcesListChanged: isSet(capabilities.resources, 'listChanged'),
  };
}

export function takesSubscriptions(capabilities: Fields): boolean {
  return isSet(capabilities.resources, 'subscribe');
}

function isSet(capability: unknown, flag: string): boolean {
  return asFields(capability)?.[flag] === true;
}

/** Returns `params.notifications`, without the members that are not asked for. */
export function filterParams(filter: ListenFilter): Fields {
  const flags = FLAGS.filter((flag) => filter[flag]).map((flag) => [flag, true] as const);
  const { resourceSubscriptions } = filter;
  return { ...Object.fromEntries(flags), ...(resourceSubscriptions.length > 0 && { resourceSubscriptions }) };
}

export function isEmptyFilter(filter: ListenFilter): boolean {
  return filter.resourceSubscriptions.length === 0 && !FLAGS.some((flag) => filter[flag]);
}

/** Returns true if both filters ask for the same changes, in any order. A filter has no duplicates. */
export function isSameFilter(a: ListenFilter, b: ListenFilter): boolean {
  if (FLAGS.some((flag) => a[flag] !== b[flag])) return false;
  if (a.resourceSubscriptions.length !== b.resourceSubscriptions.length) return false;
  const uris = new Set(a.resourceSubscriptions);
  return b.resourceSubscriptions.every((uri) => uris.has(uri));
}

/** Returns the intersection of two filters. */
export function commonFilter(a: ListenFilter, b: ListenFilter): ListenFilter {
  const uris = new Set(b.resourceSubscriptions);
  return {
    ...commonFlags(a, b),
    resourceSubscriptions: a.resourceSubscriptions.filter((uri) => uris.has(uri)),
  };
}

export function commonFlags(a: ListFlags, b: ListFlags): ListFlags {
  return {
    toolsListChanged: a.toolsListChanged && b.toolsListChanged,
    promptsListChanged: a.promptsListChanged && b.promptsListChanged,
    resourcesListChanged: a.resourcesListChanged && b.resourcesListChanged,
  };
}

/**
 * Time for which a stream stays open after the acknowledgment of its successor. Each may have a connection of its own,
 * so reports of the old one may arrive later than the acknowledgment, although they were sent before.
 */
export const OVERLAP_MS = 250;
/**
 * Limits for the changes that are compared in this time: their number, and the bytes of their names and notifications.
 * A change beyond them may be reported twice.
 */
export const MAX_COMPARED = 1000;
export const MAX_COMPARED_BYTES = 256 * 1024;

/** A stream that the server has acknowledged, and the changes that it reports. */
export interface Acknowledged {
  readonly stream: ServerSubscription;
  readonly brings: ListenFilter;
}

interface Compared {
  /** Number of reports by the new stream, less those by the old one. */
  lead: number;
  /** The latest report of the new stream. */
  readonly latest: Frame | undefined;
}

/**
 * Two streams of one client, while one takes the place of the other. Both report a change that happens now, and the
 * client is to hear of it once. Reports of the old stream are passed on. Those of the new one are kept until the old
 * stream is closed, and then count only if the old one has reported fewer changes of this name. A client that was told of
 * a change shortly before may have looked before the next one, so that time alone does not tell a repetition.
 */
export class StreamOverlap {
  readonly old: ServerSubscription;
  readonly new: ServerSubscription;
  readonly #ofOld: ReadonlySet<string>;
  readonly #ofNew: ReadonlySet<string>;
  readonly #compared = new Map<string, Compared>();
  #bytes = 0;

  constructor(previous: Acknowledged, next: Acknowledged) {
    this.old = previous.stream;
    this.new = next.stream;
    this.#ofOld = new Set(previous.brings.resourceSubscriptions);
    this.#ofNew = new Set(next.brings.resourceSubscriptions);
  }

  /** Returns true if the old stream may report the resource, which can be part of one that the stream was asked for. */
  #isOfOld(uri: string): boolean {
    return this.#ofOld.has(uri) || (this.#ofOld.size > 0 && !this.#ofNew.has(uri));
  }

  /** Notes a change that the old stream has reported, and that is passed on. */
  reportedByOld(name: string): void {
    const { lead, latest } = this.#compared.get(name) ?? NEVER_REPORTED;
    this.#compare(name, { lead: lead - 1, latest });
  }

  /**
   * Keeps a change that the new stream has reported. Returns false if it has to be passed on now, because the old stream
   * does not report it, or because too much is kept.
   * @param uri the resource, if the change is one of a resource
   */
  keep(name: string, uri: string | undefined, frame: Frame): boolean {
    if (uri !== undefined && !this.#isOfOld(uri)) return false;
    const { lead } = this.#compared.get(name) ?? NEVER_REPORTED;
    return this.#compare(name, { lead: lead + 1, latest: frame });
  }

  #compare(name: string, compared: Compared): boolean {
    const before = this.#compared.get(name);
    const bytes = this.#bytes + sizeOf(name, compared) - (before === undefined ? 0 : sizeOf(name, before));
    const isTooMuch = bytes > MAX_COMPARED_BYTES || (before === undefined && this.#compared.size >= MAX_COMPARED);
    if (isTooMuch) return false;
    this.#bytes = bytes;
    this.#compared.set(name, compared);
    return true;
  }

  /** Returns the latest reports of the changes that only the new stream has reported. */
  reportedByNewAlone(): readonly Frame[] {
    return [...this.#compared.values()].flatMap(({ lead, latest }) => (lead > 0 && latest ? [latest] : []));
  }
}

const NEVER_REPORTED: Compared = { lead: 0, latest: undefined };

function sizeOf(name: string, { latest }: Compared): number {
  return name.length + (latest?.bytes.length ?? 0);
}

const REFUSED: RpcError = { code: INVALID_PARAMS, message: 'The server does not report changes of this resource.' };

/** Subscribe requests of the client that wait until the server has acknowledged or refused their resource. */
export class PendingSubscribes {
  readonly #client: { readonly listener: ServerListener };
  readonly #waiting = new Map<string, Call[]>();

  constructor(client: { readonly listener: ServerListener }) {
    this.#client = client;
  }

  add(uri: string, call: Call): void {
    const waiting = this.#waiting.get(uri);
    if (waiting === undefined) this.#waiting.set(uri, [call]);
    else waiting.push(call);
  }

  /** Withdraws a request. Returns its URI if no other request waits for it. */
  withdraw(call: Call): string | undefined {
    for (const [uri, waiting] of this.#waiting) {
      const index = waiting.indexOf(call);
      if (index === -1) continue;
      waiting.splice(index, 1);
      if (waiting.length > 0) return undefined;
      this.#waiting.delete(uri);
      return uri;
    }
    return undefined;
  }

  grant(uri: string): void {
    for (const call of this.#take(uri)) this.#client.listener.fromServer(resultFrame(call.id, {}), call);
  }

  refuse(uri: string, error: RpcError = REFUSED): void {
    for (const call of this.#take(uri)) this.#client.listener.fromServer(errorFrame(call.id, error), call);
  }

  has(uri: string): boolean {
    return this.#waiting.has(uri);
  }

  #take(uri: string): readonly Call[] {
    const waiting = this.#waiting.get(uri) ?? [];
    this.#waiting.delete(uri);
    return waiting;
  }
}
