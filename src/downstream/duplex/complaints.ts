import type { Logger } from 'pino';
import type { BridgeError, ErrorCode } from '../../errors.ts';

/**
 * What is wrong with what one client says. The client decides how often something is wrong, so of each kind the log has the
 * first, and at the end their number; with `--log-level debug` it has all of them.
 */
export class Complaints {
  readonly #log: Logger;
  /** How many came after the first, by code. */
  readonly #further = new Map<ErrorCode, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  tell(level: 'warn' | 'error', { code, message, cause }: BridgeError): void {
    const further = this.#further.get(code);
    this.#further.set(code, further === undefined ? 0 : further + 1);
    this.#log[further === undefined ? level : 'debug']({ code, err: cause }, message);
  }

  /** The client is gone. May be called several times. */
  close(): void {
    for (const [code, further] of this.#further) {
      if (further > 0)
        this.#log.warn({ code, further }, `${further} more messages of a client were refused for ${code}`);
    }
    this.#further.clear();
  }
}
