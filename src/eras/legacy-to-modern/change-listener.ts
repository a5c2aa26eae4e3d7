import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { type ListenFilter, readListenFilter } from '../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED } from '../../mcp/vocabulary/methods.ts';
import { asFields, readField, readFields } from '../../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR, METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { SubscribedUris, TOO_MANY_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ServerListener } from '../../relay/ports.ts';
import { editFrame, type Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { notificationFrame, resultFrame } from '../../wire/write-message.ts';
import {
  type Acknowledged,
  commonFilter,
  commonFlags,
  isEmptyFilter,
  isSameFilter,
  type ListenOwner,
  type ListFlags,
  OVERLAP_MS,
  PendingSubscribes,
  ServerSubscription,
  StreamOverlap,
} from './server-subscription.ts';
import type { UpstreamRequests } from './upstream-requests.ts';

/**
 * Delay before the subscription is changed. Clients subscribe to many resources in a row, and each change is a request.
 */
export const DEBOUNCE_MS = 30;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/**
 * Delay after a regular end of a subscription, which is longer than after a failure, because the server wanted it to
 * end.
 */
const GRACEFUL_RETRY_MS = 5_000;

export interface ChangeListenerOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * Returns a random number from 0 to 1. It spreads the retries of sessions that lost their subscriptions at the same
   * time.
   */
  readonly random: () => number;
  /** The session of the client, whose listener gets the messages. */
  readonly client: { readonly listener: ServerListener };
  readonly requests: UpstreamRequests;
  /** Lists whose changes the server announces. */
  readonly lists: ListFlags;
  /** The lane of the session's own requests. */
  readonly lane: Lane;
  metadata(): RequestMetadata;
}

/**
 * Notifies a legacy client of changes at a modern server. All changes come by one `subscriptions/listen`, which is
 * replaced when the client wants other changes. The old one is closed a moment after the new one is acknowledged, so
 * that no change is lost in between. [spec 2026-07-28 basic/patterns/subscriptions]
 */
export class ChangeListener implements ListenOwner {
  readonly #options: ChangeListenerOptions;
  readonly #pending: PendingSubscribes;
  readonly #uris = new SubscribedUris();
  #lists: ListFlags;
  #current: Acknowledged | undefined;
  /** The stream that will replace the current one, until it is acknowledged. */
  #next: ServerSubscription | undefined;
  /** Set while the stream that the current one has replaced is still open. */
  #overlap: { readonly streams: StreamOverlap; readonly stopTimer: () => void } | undefined;
  /** True if changes may have been missed, since a stream was lost. */
  #hasGap = false;
  #failures = 0;
  /** Set while a comparison of wanted and reported changes is due. */
  #stopTimer: (() => void) | undefined;
  #phase: 'idle' | 'listening' | 'unavailable' | 'closed' = 'idle';

  constructor(options: ChangeListenerOptions) {
    this.#options = options;
    this.#lists = options.lists;
    this.#pending = new PendingSubscribes(options.client);
  }

  /** Starts to report changes, now that the client can be notified. */
  start(): void {
    if (this.#phase !== 'idle') return;
    this.#phase = 'listening';
    this.#lookAfter(DEBOUNCE_MS);
  }

  /** Subscribes to a resource. The client gets its answer when the server has acknowledged a subscription with it. */
  subscribe(uri: string, call: Call): void {
    this.start();
    this.#pending.add(uri, call);
    if (this.#phase === 'unavailable') return this.#pending.refuse(uri, UNAVAILABLE);
    if (!this.#uris.add(uri)) return this.#pending.refuse(uri, rpcErrorOf(TOO_MANY_SUBSCRIBED));
    if (this.#current?.brings.resourceSubscriptions.includes(uri)) this.#pending.grant(uri);
    this.#lookAfter(DEBOUNCE_MS);
  }

  /** Unsubscribes. The client gets its answer at once, even for a resource that it was not subscribed to. */
  unsubscribe(uri: string, call: Call): void {
    this.#pending.grant(uri);
    this.#drop(uri);
    this.#options.client.listener.fromServer(resultFrame(call.id, {}), call);
  }

  /** Withdraws a subscribe request that was not answered. */
  withdraw(call: Call): void {
    const uri = this.#pending.withdraw(call);
    if (uri !== undefined) this.#drop(uri);
  }

  #drop(uri: string): void {
    if (this.#uris.delete(uri)) this.#lookAfter(DEBOUNCE_MS);
  }

  /** Called when the link is gone, or about to be closed. */
  close(): void {
    this.#phase = 'closed';
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#overlap?.stopTimer();
    this.#overlap = undefined;
  }

  // ---- wanted and reported changes

  #lookAfter(delayMs: number): void {
    if (this.#phase !== 'listening') return;
    this.#stopTimer?.();
    this.#stopTimer = this.#options.clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#stopTimer = undefined;
    // A replacement is under way. Its acknowledgment leads back here.
    if (this.#next !== undefined) return;
    const wanted = this.#wanted();
    if (isEmptyFilter(wanted)) {
      this.#endOverlap();
      this.#current?.stream.close();
      this.#current = undefined;
      return;
    }
    if (this.#current !== undefined && isSameFilter(this.#current.brings, wanted)) return;
    const { requests, metadata, lane } = this.#options;
    this.#next = new ServerSubscription(this, requests, wanted);
    this.#next.open(metadata(), lane);
  }

  #wanted(): ListenFilter {
    return { ...this.#lists, resourceSubscriptions: [...this.#uris] };
  }

  acknowledged(stream: ServerSubscription, frame: Frame): void {
    if (stream !== this.#next) return;
    const granted = readListenFilter(frame) ?? stream.asked;
    const brings = commonFilter(stream.asked, granted);
    const previous = this.#current;
    const current = { stream, brings };
    this.#current = current;
    this.#next = undefined;
    this.#failures = 0;
    this.#endOverlap();
    if (previous !== undefined) {
      const streams = new StreamOverlap(previous, current);
      const stopTimer = this.#options.clock.after(OVERLAP_MS, () => this.#endOverlap());
      this.#overlap = { streams, stopTimer };
    }
    this.#settle(stream.asked, brings);
    if (this.#hasGap) this.#tellMissed(brings);
    this.#hasGap = false;
    if (!isSameFilter(brings, this.#wanted())) this.#lookAfter(DEBOUNCE_MS);
  }

  /** Closes the replaced stream. The client is told what only the new one has reported. */
  #endOverlap(): void {
    const overlap = this.#overlap;
    if (overlap === undefined) return;
    this.#overlap = undefined;
    overlap.stopTimer();
    overlap.streams.old.close();
    for (const frame of overlap.streams.reportedByNewAlone()) {
      if (!this.#isUnwanted(overlap.streams.new, updatedResource(frame))) this.#tell(frame);
    }
  }

  /**
   * The server may acknowledge less than was asked for. [spec 2026-07-28 basic/patterns/subscriptions#acknowledgment]
   */
  #settle(asked: ListenFilter, brings: ListenFilter): void {
    if (!isSameFilter(asked, brings)) {
      this.#options.log.info('the server will report fewer changes than were asked for');
    }
    this.#lists = commonFlags(this.#lists, brings);
    const granted = new Set(brings.resourceSubscriptions);
    for (const uri of asked.resourceSubscriptions) {
      if (granted.has(uri)) {
        this.#pending.grant(uri);
        continue;
      }
      this.#uris.delete(uri);
      this.#pending.refuse(uri);
    }
  }

  #tellMissed(brings: ListenFilter): void {
    const { listener } = this.#options.client;
    if (brings.toolsListChanged) listener.fromServer(notificationFrame(TOOLS_CHANGED));
    if (brings.promptsListChanged) listener.fromServer(notificationFrame(PROMPTS_CHANGED));
    if (brings.resourcesListChanged) listener.fromServer(notificationFrame(RESOURCES_CHANGED));
    for (const uri of brings.resourceSubscriptions) listener.fromServer(notificationFrame(RESOURCE_UPDATED, { uri }));
  }

  // ---- from the server

  changed(stream: ServerSubscription, frame: Frame): void {
    const uri = updatedResource(frame);
    if (this.#isUnwanted(stream, uri)) return;
    const streams = this.#overlap?.streams;
    const name = `${frame.method} ${uri ?? ''}`;
    if (stream === streams?.old) streams.reportedByOld(name);
    else if (streams?.keep(name, uri, frame)) return;
    this.#tell(frame);
  }

  /**
   * Returns true for a resource that the client has unsubscribed from. A stream reports its changes until it is replaced.
   * A resource that was never asked for is wanted, because it can be part of one that was.
   */
  #isUnwanted(stream: ServerSubscription, uri: string | undefined): boolean {
    return uri !== undefined && !this.#uris.has(uri) && stream.asked.resourceSubscriptions.includes(uri);
  }

  #tell(frame: Frame): void {
    this.#options.client.listener.fromServer(withoutSubscriptionId(frame));
  }

  ended(stream: ServerSubscription, answer: Frame | undefined): void {
    const error = answer?.kind === 'error' ? readError(answer) : undefined;
    if (stream === this.#overlap?.streams.old) return this.#oldEnded(error);
    const wasCurrent = stream === this.#current?.stream;
    if (wasCurrent) {
      this.#current = undefined;
      this.#hasGap = true;
    } else {
      this.#next = undefined;
      this.#refuseNew(stream.asked, error ?? ENDED_EARLY);
    }
    if (error?.code === METHOD_NOT_FOUND) return this.#giveUp();
    this.#noteEnd(error);
    this.#lookAfter(this.#retryMs(wasCurrent && error === undefined));
  }

  /** Called when the server has ended the replaced stream, whose last reports are lost if its connection has failed. */
  #oldEnded(error: RpcError | undefined): void {
    if (error === undefined || this.#current === undefined) return this.#endOverlap();
    this.#overlap?.stopTimer();
    this.#overlap = undefined;
    this.#tellMissed(this.#current.brings);
  }

  /**
   * Logs the loss once instead of at each attempt. The session continues, but its client is not notified of changes.
   */
  #noteEnd(error: RpcError | undefined): void {
    if (this.#failures > 0) return;
    const { log } = this.#options;
    if (error === undefined) return log.info('The server ended a subscription; another one is opened in a while.');
    const reason = asFields(asFields(error.data)?.bridge)?.reason;
    const message = `The client is not told of changes for now; trying again to subscribe: ${error.message}`;
    log.warn({ code: reason ?? error.code }, message);
  }

  /** Answers the subscribe requests that waited for a stream which was never acknowledged. */
  #refuseNew(asked: ListenFilter, error: RpcError): void {
    for (const uri of asked.resourceSubscriptions) {
      if (!this.#pending.has(uri)) continue;
      this.#uris.delete(uri);
      this.#pending.refuse(uri, error);
    }
  }

  #retryMs(isGraceful: boolean): number {
    const firstMs = isGraceful ? GRACEFUL_RETRY_MS : FIRST_RETRY_MS;
    const delayMs = Math.min(firstMs * 2 ** this.#failures, MAX_RETRY_MS);
    this.#failures += 1;
    return Math.round(delayMs * (1 + this.#options.random() / 4));
  }

  /** Called when the server turns out to have no subscriptions. */
  #giveUp(): void {
    this.#options.log.warn('the server has no subscriptions/listen; the client will not be told of changes');
    this.close();
    this.#phase = 'unavailable';
    for (const uri of this.#uris) this.#pending.refuse(uri, UNAVAILABLE);
    this.#uris.clear();
  }
}

/** Returns the resource that the notification says has changed. Undefined if the notification is about something else. */
function updatedResource(frame: Frame): string | undefined {
  const uri = frame.method === RESOURCE_UPDATED ? readField(frame, 'uri') : undefined;
  return typeof uri === 'string' ? uri : undefined;
}

const UNAVAILABLE: RpcError = { code: METHOD_NOT_FOUND, message: 'The server does not report changes of resources.' };
const ENDED_EARLY: RpcError = { code: INTERNAL_ERROR, message: 'The server ended the subscription at once.' };

function readError(answer: Frame): RpcError {
  const { code, message, data } = readFields(answer, ['code', 'message', 'data']);
  return {
    code: typeof code === 'number' ? code : INTERNAL_ERROR,
    message: typeof message === 'string' ? message : ENDED_EARLY.message,
    ...(data !== undefined && { data }),
  };
}

/** Returns a notification of a subscription in its legacy form, which has no subscription id. */
export function withoutSubscriptionId(frame: Frame): Frame {
  const { bytes, payloadStart } = frame;
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  const meta = ObjectEditor.read(bytes, params?.value('_meta')?.start ?? -1, [META_SUBSCRIPTION_ID]);
  if (params === undefined || meta?.value(META_SUBSCRIPTION_ID) === undefined) return frame;
  meta.remove(META_SUBSCRIPTION_ID);
  if (meta.isEmpty) params.remove('_meta');
  else params.edit('_meta', meta.edits());
  return editFrame(frame, params.edits());
}
