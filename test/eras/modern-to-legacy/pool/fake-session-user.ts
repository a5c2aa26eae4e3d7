import type { LegacySession } from '../../../../src/eras/modern-to-legacy/pool/legacy-session.ts';
import { SessionUser } from '../../../../src/eras/modern-to-legacy/pool/session-user.ts';
import { type SessionWanted, sessionFor } from '../../../../src/eras/modern-to-legacy/pool/session-wanted.ts';
import type { BridgeError } from '../../../../src/errors.ts';
import { canonicalCapabilities } from '../../../../src/mcp/translate/capabilities.ts';

/** The session that a caller wants who declares these capabilities. */
export function wants(principal: string, declared: object = {}, affinity: string | undefined = ''): SessionWanted {
  return sessionFor({
    principal,
    headers: undefined,
    capabilities: canonicalCapabilities({ ...declared }),
    clientInfo: { name: 'bridge', version: '0' },
    affinity,
  });
}

/** Uses a session of a pool, and notes what it hears of it. */
export class FakeSessionUser extends SessionUser {
  /** Why its session, or the wait for one, has ended. */
  readonly losses: BridgeError[] = [];
  /** The session that it was given, also after it has left it; undefined: none yet. */
  given: LegacySession | undefined;

  /** Why it has got no session. */
  get refusedWith(): { readonly code: string; readonly message: string } | undefined {
    return this.given === undefined ? this.losses[0] : undefined;
  }

  override granted(session: LegacySession): void {
    this.given = session;
    super.granted(session);
  }

  lost(reason: BridgeError): void {
    this.losses.push(reason);
  }

  opened(): void {}
  heard(): void {}
  serverDrained(): void {}
}
