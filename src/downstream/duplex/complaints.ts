import type { Logger } from 'pino';
import type { BridgeError, ErrorCode } from '../../errors.ts';

/**
 * Logs the invalid messages of one client. A client could flood the log, so at the usual level each kind is logged
 * once, and its number when the client leaves; with `--log-level debug` all of them are logged.
 */
export class Complaints {
  readonly #log: Logger;
  /** Number of complaints after the first, by error code. */
  readonly #further = new Map<ErrorCode, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  tell(level: 'warn' | 'error', { code, message, cause }: BridgeError): void {
    const further = this.#further.get(code);
    this.#further.set(code, further === undefined ? 0 : further + 1);
    this.#log[further === undefined ? level : 'debug']({ code, err: cause }, message);
  }

  /** Logs the numbers of further complaints once the client is gone. May be called several times. */
  close(): void {
    for (const [code, further] of this.#further) {
      if (further > 0)
        this.#log.warn({ code, further }, `${further} more messages of a client were refused with ${code}`);
    }
    this.#further.clear();
  }
}
