import type { Deps } from '../../src/deps.ts';
import { createLegacyToModernDialer } from '../../src/eras/legacy-to-modern/dialer.ts';
import { createModernToLegacyDialer } from '../../src/eras/modern-to-legacy/dialer.ts';
import type { JoinEras } from '../../src/upstream/detect/joined-dialers.ts';

export const CLIENT_INFO = { name: 'mcp-portage', version: '0' };

/** The translators themselves, with nothing shared between clients of a modern server. */
export const joinErasWith =
  (deps: Deps): JoinEras =>
  ({ legacy, modern, modernForOne }) => ({
    modern,
    legacyToModern: createLegacyToModernDialer({ dialer: modernForOne, deps, clientInfoFallback: CLIENT_INFO }),
    modernToLegacy: createModernToLegacyDialer({
      dialer: legacy,
      deps,
      handshakeTimeoutMs: 0,
      sharing: 'by-name',
      clientInfo: CLIENT_INFO,
    }),
    sessions: { kind: 'own' },
  });
