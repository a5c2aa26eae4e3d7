import type { Frame } from '../../wire/frame.ts';

/**
 * One `subscriptions/listen` on a shared link. It outlives the server's process: a new one is asked again, with the
 * same words. [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure]
 */
export interface Subscription {
  /** The client's request. */
  readonly request: Frame;
  /** The client has had its acknowledgment; a later one says nothing new to it. */
  isAcknowledged: boolean;
}
