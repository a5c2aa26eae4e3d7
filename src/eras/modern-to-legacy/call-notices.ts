import { parseLogLevel, severityOf } from '../../mcp/log-levels.ts';
import { isListChanged, LOG_MESSAGE, PROGRESS, RESOURCE_UPDATED } from '../../mcp/methods.ts';
import { readPayload } from '../../mcp/payload.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Follower } from './follower.ts';
import { ProgressRelay } from './progress-relay.ts';

/** What a server says in passing about one call, for the requests that follow it at that moment. */
export class CallNotices {
  readonly #progress = new ProgressRelay();
  readonly #followers: ReadonlySet<Follower>;

  constructor(followers: ReadonlySet<Follower>) {
    this.#followers = followers;
  }

  /** It is told what nobody was there to hear. */
  joined(follower: Follower): void {
    this.#progress.joined(follower);
  }

  take(frame: Frame, exchange: Exchange | undefined): void {
    switch (frame.method) {
      case PROGRESS:
        return this.#progress.take(frame, this.#followers);
      case LOG_MESSAGE:
        return this.#logged(frame);
      default:
        // Changes are for those who listen to them.
        if (exchange === undefined || isListChanged(frame.method) || frame.method === RESOURCE_UPDATED) return;
        for (const follower of this.#followers) follower.notify(frame);
    }
  }

  /** [spec 2026-07-28 server/utilities/logging] none without a level, and none below it. */
  #logged(frame: Frame): void {
    const level = parseLogLevel(readPayload(frame)?.level);
    if (level === undefined) return;
    for (const follower of this.#followers) {
      const isWanted = follower.logLevel !== undefined && severityOf(level) >= severityOf(follower.logLevel);
      if (isWanted) follower.notify(frame);
    }
  }
}
