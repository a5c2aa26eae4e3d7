/** What an observer is told, as tests need it. */
import type { CallEnding, ObservedCall, ObservedClient, ObservedServer, Observer } from '../../src/relay/observer.ts';

export const SERVER_2026: ObservedServer = { transport: 'stdio', era: 'modern', revision: '2026-07-28' };
export const SERVER_2025: ObservedServer = { transport: 'stdio', era: 'legacy', revision: '2025-06-18' };

/** A legacy client of a session, unless the test says otherwise. */
export function client(parts: Partial<ObservedClient> = {}): ObservedClient {
  return {
    transport: 'streamable-http',
    principal: 'someone',
    server: 'everything',
    era: 'legacy',
    revision: '2025-06-18',
    name: 'cursor',
    version: '0.42',
    ...parts,
  };
}

export const MODERN: Partial<ObservedClient> = { era: 'modern', revision: '2026-07-28' };

export function call(parts: Partial<ObservedCall> = {}): ObservedCall {
  const known = { client: client(), method: 'tools/call', tool: 'echo', requestBytes: 100, openedAtMs: 0 };
  return { ...known, traceId: undefined, ...parts };
}

export function ending(parts: Partial<CallEnding> = {}): CallEnding {
  return { outcome: { kind: 'answered' }, bytes: 200, durationMs: 15, server: SERVER_2025, ...parts };
}

/** A call from its beginning to its end. */
export function runCall(observer: Observer, opened: Partial<ObservedCall> = {}, ended: Partial<CallEnding> = {}): void {
  observer.opened(call(opened))?.(ending(ended));
}
