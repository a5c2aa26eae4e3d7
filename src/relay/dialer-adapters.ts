/** Dialers of one kind, used where another kind is expected. */
import { CallsOverLinks } from './call-over-link.ts';
import type { CallerDialers, RestorePolicy, SessionDialer, UpstreamDialer } from './ports.ts';

/** Serves modern requests on the connections of a server whose connections do not depend on the caller. */
export function callsOverSessions(dialer: SessionDialer): UpstreamDialer {
  const calls = new CallsOverLinks((owner) => dialer.dial(owner));
  return {
    name: dialer.name,
    dial: (owner, session) => dialer.dial(owner, session),
    dialCalls: (owner) => dialer.dial(owner),
    callServer: () => calls,
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}

/** Gives all callers the same dialer, because the server's processes get no variables that describe a caller. */
export function forEveryCaller(dialer: UpstreamDialer, restores?: RestorePolicy): CallerDialers {
  return {
    name: dialer.name,
    restores,
    forCaller: () => dialer,
    linkEnded: () => {},
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}
