import type { Logger } from 'pino';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import { readProgress, rewriteProgress } from '../../mcp/classify/correlators.ts';
import { type LogLevel, parseLogLevel, severityOf } from '../../mcp/vocabulary/client-declarations.ts';
import { isListChanged, LOG_MESSAGE, PROGRESS, RESOURCE_UPDATED, TASK_STATUS } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Call } from '../../relay/call.ts';
import { ownBytes } from '../../wire/byte-collector.ts';
import { Frame } from '../../wire/frame.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { Follower } from './questions/parked-call.ts';

/** A call, as its notices need it. */
export interface NoticedCall {
  readonly followers: Iterable<Follower>;
  /** The client is being asked something, and no request follows. */
  readonly isParked: boolean;
}

export interface CallNoticesOptions {
  readonly noticed: NoticedCall;
  /** Opens the account for the bytes of kept notifications. Called for the first of them, which is rare. */
  readonly openBytes: () => HeldBytes;
  /** The log level of the request that followed the call last. */
  readonly logLevel: LogLevel | undefined;
  readonly log: Logger;
}

/**
 * Passes the notifications of a server about one call to the requests that follow it. Those that arrive while the
 * client is being asked, and no request follows, are kept for the first that comes back.
 */
export class CallNotices {
  readonly #options: CallNoticesOptions;
  /** The latest progress value that was passed on. Values must increase, which not all servers see to. */
  #progress = Number.NEGATIVE_INFINITY;
  #kept: KeptNotices | undefined;
  /** The log level of the request that followed the call last. */
  #logLevel: LogLevel | undefined;

  constructor(options: CallNoticesOptions) {
    this.#options = options;
    this.#logLevel = options.logLevel;
  }

  /** A request follows the call, or comes for the outcome. It gets the notifications that were kept. */
  followed(follower: Follower): void {
    this.#logLevel = follower.logLevel;
    const kept = this.#kept;
    if (kept === undefined) return;
    this.#kept = undefined;
    const { dropped } = kept;
    if (dropped > 0) this.#options.log.warn({ dropped }, LOST);
    for (const notice of kept.takeAll()) {
      if (notice.method === PROGRESS) tellProgress(follower, notice);
      else if (notice.method !== LOG_MESSAGE || isWanted(levelOf(notice), follower.logLevel)) follower.notify(notice);
    }
  }

  take(frame: Frame, call: Call | undefined): void {
    switch (frame.method) {
      case PROGRESS:
        return this.#progressed(frame);
      case LOG_MESSAGE:
        return this.#logged(frame);
      case TASK_STATUS:
        // A modern client knows neither the notification nor the task: it has one of the bridge's.
        return this.#options.log.debug(
          { method: frame.method },
          'notification dropped: the modern era does not have it',
        );
      default:
        // Changes are for those who listen to them.
        if (call === undefined || isListChanged(frame.method) || frame.method === RESOURCE_UPDATED) return;
        for (const follower of this.#options.noticed.followers) follower.notify(frame);
        this.#keepUnheard(frame);
    }
  }

  /** [spec 2026-07-28 basic/patterns/progress] each value is larger than the one before. */
  #progressed(frame: Frame): void {
    const progress = readProgress(frame);
    if (progress === undefined || progress <= this.#progress) return;
    this.#progress = progress;
    for (const follower of this.#options.noticed.followers) tellProgress(follower, frame);
    this.#keepUnheard(frame);
  }

  /**
   * [spec 2026-07-28 server/utilities/logging] A request without a level gets no log messages, any other one none below
   * its level.
   */
  #logged(frame: Frame): void {
    const level = levelOf(frame);
    for (const follower of this.#options.noticed.followers)
      if (isWanted(level, follower.logLevel)) follower.notify(frame);
    if (isWanted(level, this.#logLevel)) this.#keepUnheard(frame);
  }

  /** Only while the client is being asked does no request follow the call. */
  #keepUnheard(frame: Frame): void {
    const { noticed, openBytes } = this.#options;
    if (!noticed.isParked) return;
    this.#kept ??= new KeptNotices(openBytes());
    this.#kept.add(frame);
  }

  /** Called when no request can come back anymore. */
  clear(): void {
    this.#kept?.takeAll();
    this.#kept = undefined;
  }
}

const LOST = 'notifications were lost: a server said much of a call while its client was being asked something';

function tellProgress(follower: Follower, frame: Frame): void {
  // A request gets progress only if it has asked for it.
  const told = follower.progressToken && rewriteProgress(frame, follower.progressToken);
  if (told !== undefined) follower.notify(told);
}

function levelOf(frame: Frame): LogLevel | undefined {
  return parseLogLevel(readField(frame, 'level'));
}

function isWanted(level: LogLevel | undefined, least: LogLevel | undefined): boolean {
  return level !== undefined && least !== undefined && severityOf(level) >= severityOf(least);
}

/** Limits the notices of one call. Clients come back within seconds; one that is away for longer reads the latest. */
export const MAX_KEPT_NOTICES = 100;
export const MAX_KEPT_NOTICE_BYTES = 64 * 1024;

/**
 * The notifications about a call that arrive while no request of its client follows it, the oldest first. At the limit
 * the oldest is dropped, but the latest progress last.
 */
export class KeptNotices {
  readonly #held: HeldBytes;
  readonly #notices = new ByteQueue<Frame>(
    { maxItems: MAX_KEPT_NOTICES, maxBytes: MAX_KEPT_NOTICE_BYTES },
    ({ bytes }) => bytes.length,
  );
  #latestProgress: Frame | undefined;
  /** The number of notifications that were dropped. */
  dropped = 0;

  /** `held`: where its bytes count. */
  constructor(held: HeldBytes) {
    this.#held = held;
  }

  add(notice: Frame): void {
    const { length } = notice.bytes;
    if (length > MAX_KEPT_NOTICE_BYTES) {
      // The notification exceeds the limit by itself, whatever else is dropped.
      this.dropped += 1;
      return;
    }
    const kept = new Frame(ownBytes(notice.bytes), notice);
    this.#notices.add(kept);
    if (notice.method === PROGRESS) this.#latestProgress = kept;
    while (this.#notices.isExceeded || !this.#held.set(this.#notices.bytes)) this.#dropOldest();
  }

  #dropOldest(): void {
    const isLast = this.#notices.length === 1;
    this.#notices.removeFirst((notice) => isLast || notice !== this.#latestProgress);
    this.dropped += 1;
  }

  /** All of them, in their order; none is kept anymore. */
  takeAll(): readonly Frame[] {
    this.#latestProgress = undefined;
    this.#held.set(0);
    return this.#notices.takeAll();
  }
}
