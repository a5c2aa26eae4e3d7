import { RecentNames } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import type { ListenFilter } from '../../mcp/translate/listen-filter.ts';
import { LISTEN, LISTEN_ACKNOWLEDGED } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';
import type { Asker, UpstreamRequests } from './upstream-requests.ts';

/** Hears what comes on a subscription. */
export interface ListenOwner {
  /** The first thing a stream says. */
  acknowledged(stream: ServerSubscription, frame: Frame): void;
  changed(stream: ServerSubscription, frame: Frame): void;
  /** The server, or the way to it, has ended the stream: with a result, with an error or by withdrawing it. */
  ended(stream: ServerSubscription, answer: Frame | undefined): void;
}

/** One `subscriptions/listen` at the server. */
export class ServerSubscription implements Asker {
  /** What it asked for. */
  readonly asked: ListenFilter;
  readonly #owner: ListenOwner;
  readonly #requests: UpstreamRequests;
  #exchange: Exchange | undefined;
  #isAcknowledged = false;

  constructor(owner: ListenOwner, requests: UpstreamRequests, asked: ListenFilter) {
    this.#owner = owner;
    this.#requests = requests;
    this.asked = asked;
  }

  open(metadata: RequestMetadata, lane: Lane): void {
    const frame = stampMetadata(requestFrame(0, LISTEN, { notifications: filterParams(this.asked) }), metadata);
    this.#exchange = this.#requests.open(this, frame, lane);
    this.#requests.send(frame, this.#exchange);
  }

  /** Nothing is heard of it any more. */
  close(): void {
    if (this.#exchange !== undefined) this.#requests.cancel(this.#exchange, 'another subscription took its place');
  }

  answered(frame: Frame): void {
    this.#owner.ended(this, frame);
  }

  /** [spec 2026-07-28 basic/patterns/cancellation] the other way for a server to end a subscription. */
  withdrawn(): void {
    this.#owner.ended(this, undefined);
  }

  notified(frame: Frame): void {
    if (frame.method !== LISTEN_ACKNOWLEDGED) return this.#owner.changed(this, frame);
    // The link below may have opened it anew; that is its own affair.
    if (this.#isAcknowledged) return;
    this.#isAcknowledged = true;
    this.#owner.acknowledged(this, frame);
  }
}

// ---- Sets of changes a client wants to hear of: the filter of one `subscriptions/listen`.

const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;

export type ListFlags = Omit<ListenFilter, 'resourceSubscriptions'>;

/** The lists of which a server with these capabilities announces changes. */
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

/** `params.notifications`: what is not asked for is left out. */
export function filterParams(filter: ListenFilter): Fields {
  const flags = FLAGS.filter((flag) => filter[flag]).map((flag) => [flag, true] as const);
  const { resourceSubscriptions } = filter;
  return { ...Object.fromEntries(flags), ...(resourceSubscriptions.length > 0 && { resourceSubscriptions }) };
}

export function isEmptyFilter(filter: ListenFilter): boolean {
  return filter.resourceSubscriptions.length === 0 && !FLAGS.some((flag) => filter[flag]);
}

/** Do both ask for the same, in whatever order? Neither names a resource twice. */
export function isSameFilter(a: ListenFilter, b: ListenFilter): boolean {
  if (FLAGS.some((flag) => a[flag] !== b[flag])) return false;
  if (a.resourceSubscriptions.length !== b.resourceSubscriptions.length) return false;
  const uris = new Set(a.resourceSubscriptions);
  return b.resourceSubscriptions.every((uri) => uris.has(uri));
}

/** What is in both. */
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

/** Two streams tell of one change within this time of each other. */
export const OVERLAP_MS = 250;
/** Beyond so many within that time, or so many characters of what has changed, a change may be told twice. */
export const MAX_RECENT = 1000;
export const MAX_RECENT_LENGTH = 256 * 1024;

/**
 * While one stream takes over from another, both tell of each change. A change that one and the same stream tells twice
 * has happened twice.
 */
export class RecentChanges<Stream> {
  readonly #clock: Clock;
  readonly #seen = new RecentNames<{ readonly stream: Stream; readonly atMs: number }>({
    count: MAX_RECENT,
    length: MAX_RECENT_LENGTH,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has another stream told of it just now? If not, this one has. */
  isRepeated(stream: Stream, change: string): boolean {
    const nowMs = this.#clock.now();
    const seen = this.#seen.get(change);
    if (seen !== undefined && seen.stream !== stream && nowMs - seen.atMs <= OVERLAP_MS) return true;
    this.#seen.set(change, { stream, atMs: nowMs });
    return false;
  }

  clear(): void {
    this.#seen.clear();
  }
}

const REFUSED: RpcError = { code: INVALID_PARAMS, message: 'The server does not report changes of this resource.' };

/** Requests of the client that wait until the server has said whether it reports changes of a resource. */
export class PendingSubscribes {
  readonly #listener: ServerListener;
  readonly #waiting = new Map<string, Exchange[]>();

  constructor(listener: ServerListener) {
    this.#listener = listener;
  }

  add(uri: string, exchange: Exchange): void {
    const waiting = this.#waiting.get(uri);
    if (waiting === undefined) this.#waiting.set(uri, [exchange]);
    else waiting.push(exchange);
  }

  /** The URI nobody waits for any more now that this request is withdrawn. */
  withdraw(exchange: Exchange): string | undefined {
    for (const [uri, waiting] of this.#waiting) {
      const index = waiting.indexOf(exchange);
      if (index === -1) continue;
      waiting.splice(index, 1);
      if (waiting.length > 0) return undefined;
      this.#waiting.delete(uri);
      return uri;
    }
    return undefined;
  }

  grant(uri: string): void {
    for (const exchange of this.#take(uri)) this.#listener.fromServer(resultFrame(exchange.id, {}), exchange);
  }

  refuse(uri: string, error: RpcError = REFUSED): void {
    for (const exchange of this.#take(uri)) this.#listener.fromServer(errorFrame(exchange.id, error), exchange);
  }

  has(uri: string): boolean {
    return this.#waiting.has(uri);
  }

  #take(uri: string): readonly Exchange[] {
    const waiting = this.#waiting.get(uri) ?? [];
    this.#waiting.delete(uri);
    return waiting;
  }
}
