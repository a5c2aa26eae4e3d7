import type { DecorateSession } from '../../src/relay/passing-link.ts';
import type {
  CallContext,
  CallDialer,
  ServerListener,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from '../../src/relay/ports.ts';
import { ChildLimit } from '../../src/upstream/stdio/child-limit.ts';
import type { StdioDialerOptions } from '../../src/upstream/stdio/dialer.ts';

/** What a dialer of processes is told that shares nothing with others, and about which nobody asks. */
export function loneDialer(): Pick<StdioDialerOptions, 'children' | 'failureLevel' | 'urgency' | 'trialClient'> {
  return { children: new ChildLimit(), failureLevel: 'warn', urgency: undefined, trialClient: undefined };
}

/** No session is stored. */
export const keepsNothing: DecorateSession = (dialer, listener, session) => dialer.dial(listener, session);

/** A dialer for clients of one era where one for both is wanted. Requests go over sessions where there is nothing else. */
export function asUpstream(dialer: SessionDialer | CallDialer): UpstreamDialer {
  return {
    name: dialer.name,
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
    dial(listener: ServerListener): UpstreamLink {
      if ('dial' in dialer) return dialer.dial(listener);
      throw new Error(`${dialer.name} has no sessions`);
    },
    dialCalls(listener: ServerListener, context: CallContext): UpstreamLink {
      return 'dialCalls' in dialer ? dialer.dialCalls(listener, context) : dialer.dial(listener);
    },
  };
}
