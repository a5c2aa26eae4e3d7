import type { Logger } from 'pino';
import type { Frame } from '../../wire/frame.ts';

const MAX_SHOWN_LENGTH = 100;

/**
 * Ignores requests of a modern server, which must not send any. A server may repeat them forever, so only the first is
 * logged as a warning. It may explain why a call does not return. [spec 2026-07-28 transports/stdio#receiving-messages]
 */
export class ModernQuestions {
  #wasTold = false;

  ignore({ method }: Frame, log: Logger): void {
    const level = this.#wasTold ? 'debug' : 'warn';
    this.#wasTold = true;
    log[level]({ method: method?.slice(0, MAX_SHOWN_LENGTH) }, 'a modern server asked something; that is ignored');
  }
}
