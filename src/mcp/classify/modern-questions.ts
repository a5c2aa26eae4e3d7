import type { Logger } from 'pino';
import type { Frame } from '../../wire/frame.ts';

const MAX_SHOWN_LENGTH = 100;

/**
 * Requests of a modern server, which must not be sent and are not answered. The server may go on with them for ever, so
 * the log says it once where somebody would look for what a call waits for.
 * [spec 2026-07-28 transports/stdio#receiving-messages]
 */
export class ModernQuestions {
  #wasTold = false;

  ignore({ method }: Frame, log: Logger): void {
    const level = this.#wasTold ? 'debug' : 'warn';
    this.#wasTold = true;
    log[level]({ method: method?.slice(0, MAX_SHOWN_LENGTH) }, 'a modern server asked something; that is ignored');
  }
}
