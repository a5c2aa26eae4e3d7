import type { Clock } from '../../../deps.ts';
import type { LogLevel } from '../../../mcp/vocabulary/client-declarations.ts';
import { SET_LEVEL } from '../../../mcp/vocabulary/methods.ts';
import type { UpstreamLink } from '../../../relay/ports.ts';
import type { LegacyState } from '../../../relay/shared/legacy/legacy-state.ts';

/** Time for which a log level is held. */
export const LEVEL_HOLD_MS = 5000;
/** The quietest level there is; none turns log messages off. */
const QUIETEST: LogLevel = 'emergency';

/**
 * Keeps a server as verbose as users wanted that have left, for a moment: each request is a user, and they come in quick
 * succession, so the server is not told after each that it may be quieter again.
 */
export class LevelHold {
  readonly #state: LegacyState;
  readonly #clock: Clock;
  #cancel: () => void = () => {};

  constructor(state: LegacyState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** `link` leads to the server that serves. */
  keep(level: LogLevel, link: UpstreamLink): void {
    this.#state.levels.hold(level);
    this.#cancel();
    this.#cancel = this.#clock.after(LEVEL_HOLD_MS, () => this.#release(link));
  }

  #release(link: UpstreamLink): void {
    const { levels } = this.#state;
    const before = levels.mostVerbose();
    levels.release();
    const wanted = levels.mostVerbose() ?? QUIETEST;
    if (wanted !== before) this.#state.tell(link, SET_LEVEL, { level: wanted });
  }

  /** The server is gone. */
  stop(): void {
    this.#cancel();
    this.#state.levels.release();
  }
}
