import { createHash } from 'node:crypto';
import { ByteQueue } from '../collections/bounded-collections.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import type { Frame } from '../wire/frame.ts';
import type { Lane } from './call.ts';
import type { CallerDialers, CallerEnvironment, LinkOwner, UpstreamLink } from './ports.ts';

/** Number of callers that have a link. Beyond it, the least recently used link is closed. */
export const MAX_CALLER_LINKS = 64;
/** A link is closed after this time without notifications, which is as long as an unused session of the pool lives. */
export const IDLE_LINK_MS = 5 * 60_000;
/** Notifications of one caller that wait while its server starts or does not read. */
export const MAX_KEPT_NOTIFICATIONS = 100;
/** Bytes of notifications of one caller that wait while its server starts or does not read. */
export const MAX_KEPT_NOTIFICATION_BYTES = 256 * 1024;
const KEPT_LIMITS = { maxItems: MAX_KEPT_NOTIFICATIONS, maxBytes: MAX_KEPT_NOTIFICATION_BYTES };
const sizeOf = ({ bytes }: Frame): number => bytes.length;

/** The sender of a notification that belongs to no call. */
export interface NotifyingCaller {
  readonly principal: string;
  readonly environment: CallerEnvironment | undefined;
  /** Headers of the caller's HTTP request that `--forward-header` names. Different values get different links. */
  readonly headers: Lane['headers'];
}

interface CallerLink {
  readonly environment: CallerEnvironment | undefined;
  link: UpstreamLink;
  lastUsedMs: number;
  /** True while the link does not take more. Notifications wait until it has drained. */
  isFull: boolean;
  readonly waiting: ByteQueue<Frame>;
}

/**
 * Links for notifications that belong to no call, such as every notification of a modern client over HTTP. Each caller
 * has a link that stays open for a while, because a link that is closed at once might lose the notifications sent on
 * it.
 */
export class CallerLinks {
  readonly #dialers: CallerDialers;
  readonly #deps: Pick<Deps, 'log' | 'clock'>;
  /** In order of use, the latest one last. */
  readonly #links = new Map<string, CallerLink>();
  #cancelTimer: (() => void) | undefined;

  constructor(dialers: CallerDialers, deps: Pick<Deps, 'log' | 'clock'>) {
    this.#dialers = dialers;
    this.#deps = deps;
  }

  /** Sends a notification, or drops it if that is impossible. A notification has no answer. */
  send(notification: Frame, caller: NotifyingCaller): void {
    try {
      const taken = this.#take(caller);
      if (taken.isFull) keep(taken, notification);
      else pass(taken, notification);
    } catch (thrown) {
      const { code, message } = toBridgeError(thrown);
      this.#deps.log.debug({ code, method: notification.method }, `notification dropped: ${message}`);
    }
  }

  #drained(taken: CallerLink): void {
    taken.isFull = false;
    while (!taken.isFull) {
      const next = taken.waiting.shift();
      if (next === undefined) return;
      pass(taken, next);
    }
  }

  #take(caller: NotifyingCaller): CallerLink {
    const key = callerOf(caller);
    const taken = this.#links.get(key) ?? this.#dial(key, caller);
    taken.lastUsedMs = this.#deps.clock.now();
    this.#links.delete(key);
    this.#links.set(key, taken);
    const [oldest] = this.#links.keys();
    if (this.#links.size > MAX_CALLER_LINKS && oldest !== undefined) this.#end(oldest, MADE_WAY);
    this.#cancelTimer ??= this.#deps.clock.after(IDLE_LINK_MS, () => this.#endIdle());
    return taken;
  }

  #end(key: string, reason: BridgeError): void {
    const ended = this.#links.get(key);
    if (ended === undefined) return;
    this.#ended(key, ended);
    ended.link.close(reason);
  }

  #ended(key: string, { environment }: CallerLink): void {
    this.#links.delete(key);
    if (environment !== undefined) this.#dialers.linkEnded(environment);
  }

  /**
   * Closes idle links. One timer serves all links, so each is closed within twice the idle time. A link that has not
   * drained stays.
   */
  #endIdle(): void {
    const nowMs = this.#deps.clock.now();
    for (const [key, { lastUsedMs, isFull }] of [...this.#links]) {
      if (!isFull && nowMs - lastUsedMs >= IDLE_LINK_MS) this.#end(key, IDLE);
    }
    const isLast = this.#links.size === 0;
    this.#cancelTimer = isLast ? undefined : this.#deps.clock.after(IDLE_LINK_MS, () => this.#endIdle());
  }

  #dial(key: string, { principal, environment, headers }: NotifyingCaller): CallerLink {
    const owner: LinkOwner = {
      serverFound: (link) => {
        taken.link = link;
      },
      fromServer: () => {},
      serverFault: () => {},
      serverDrained: () => this.#drained(taken),
      serverClosed: () => {
        if (this.#links.get(key) === taken) this.#ended(key, taken);
      },
    };
    const link = this.#dialers.forCaller(environment).dialCalls(owner, { principal, headers });
    const waiting = new ByteQueue(KEPT_LIMITS, sizeOf);
    const taken: CallerLink = { environment, link, lastUsedMs: 0, isFull: false, waiting };
    return taken;
  }

  close(reason: BridgeError): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const key of [...this.#links.keys()]) this.#end(key, reason);
  }
}

function keep(taken: CallerLink, notification: Frame): void {
  if (!taken.waiting.fits(notification)) throw NO_CAPACITY;
  taken.waiting.add(notification);
}

/** The link is marked full before `send`, because it may drain within the call. */
function pass(taken: CallerLink, notification: Frame): void {
  taken.isFull = true;
  if (taken.link.send(notification)) taken.isFull = false;
}

const NO_CAPACITY = new BridgeError('ERR_SESSION_BUSY', 'The server has not read what this caller sent before.');
const IDLE = new BridgeError('ERR_SESSION_CLOSED', 'No notification was sent for a long time.');
const MADE_WAY = new BridgeError('ERR_SESSION_CLOSED', 'Others have sent notifications since.');

/** Returns a key that is equal for requests of one caller with the same forwarded headers. */
export function callerOf({
  principal,
  headers,
}: {
  readonly principal: string;
  readonly headers: Lane['headers'];
}): string {
  return headers === undefined ? principal : JSON.stringify([principal, digestOf(headers)]);
}

/** Returns a digest, because the values may be credentials, which must not be part of a key. */
function digestOf(headers: NonNullable<Lane['headers']>): string {
  const entries = Object.entries(headers).sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(entries)).digest('base64');
}
