import type { LegacyPool } from '../../../../src/eras/modern-to-legacy/pool/legacy-pool.ts';
import type { LegacySession } from '../../../../src/eras/modern-to-legacy/pool/legacy-session.ts';
import { SessionLink, type SessionLinkUser } from '../../../../src/eras/modern-to-legacy/pool/session-link.ts';
import { type SessionWanted, sessionFor } from '../../../../src/eras/modern-to-legacy/pool/session-wanted.ts';
import type { BridgeError } from '../../../../src/errors.ts';
import { canonicalCapabilities } from '../../../../src/mcp/translate/capabilities.ts';
import type { RpcError } from '../../../../src/mcp/vocabulary/rpc-errors.ts';

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
export class FakeSessionUser implements SessionLinkUser {
  readonly link: SessionLink;
  readonly losses: BridgeError[] = [];
  /** The session that it was given, also after it has left it; undefined: none yet. */
  session: LegacySession | undefined;
  #refusal: RpcError | undefined;

  constructor(pool: LegacyPool, wanted: SessionWanted) {
    const noteSession = (session: LegacySession): void => {
      this.session = session;
    };
    class NotingLink extends SessionLink {
      override joined(session: LegacySession): void {
        noteSession(session);
        super.joined(session);
      }
    }
    this.link = new NotingLink(pool, wanted, this);
  }

  /** Why it has got no session. */
  get refusedWith(): { readonly code: string; readonly message: string } | undefined {
    if (this.#refusal === undefined) return undefined;
    const { data, message } = this.#refusal;
    return { code: (data as { bridge: { reason: string } }).bridge.reason, message };
  }

  refused(error: RpcError): void {
    this.#refusal = error;
  }

  lost(reason: BridgeError): void {
    this.losses.push(reason);
  }

  opened(): void {}
  fromServer(): void {}
  serverDrained(): void {}
}
