import type { IncomingMessage } from 'node:http';
import type { HopPasses } from '../../cluster/hop-passes.ts';
import { BridgeError } from '../../errors.ts';
import type { Authenticator } from '../../http/auth/authenticator.ts';

/** What one replica shows another with a request that it passes on. Lower case, as Node reads it. */
export const HOP_HEADER = 'mcp-portage-hop';
/** In the response of a replica that does not have what it was asked for: nothing was done, and another may have it. */
export const NOT_HERE_HEADER = 'mcp-portage-not-here';

/** As with callers (http/auth/callers.ts), what is known of a request is a property of it. */
const HOP = Symbol('hop');

type HoppedRequest = IncomingMessage & { [HOP]?: true };

/** Whether another replica has passed it on. It goes no further. */
export function hasHopped(request: IncomingMessage): boolean {
  return (request as HoppedRequest)[HOP] === true;
}

const NO_PASS = new BridgeError(
  'ERR_CLUSTER_HOP',
  `The header ${HOP_HEADER} is for replicas of this bridge, and its value is not valid here, or no longer valid.`,
);

/** Knows which requests come from other replicas, and who their callers are. */
export class Hops {
  readonly #passes: HopPasses;

  constructor(passes: HopPasses) {
    this.#passes = passes;
  }

  /**
   * Who tells of the caller of a request that another replica has passed on; undefined: no replica says that it has. Whoever
   * claims so without a pass is refused, whatever else it shows.
   */
  audienceOf(request: IncomingMessage): Authenticator | undefined {
    const pass = request.headers[HOP_HEADER];
    if (pass === undefined) return undefined;
    const { method = '', url = '' } = request;
    const principal = typeof pass === 'string' ? this.#passes.redeem(pass, { method, target: url }) : undefined;
    return {
      authenticate(_request, decided) {
        if (principal === undefined)
          return decided({ kind: 'refused', refusal: { error: NO_PASS, challenge: undefined } });
        (request as HoppedRequest)[HOP] = true;
        decided({ kind: 'principal', principal });
      },
    };
  }
}
