import { createHash } from 'node:crypto';
import type { RemoteConfig } from '../../config.ts';

/** Names what a verdict is about, for a client whose requests bring these headers along; see Lane. */
export type KeyOf = (forwarded: Readonly<Record<string, string>> | undefined) => string;

/** One server and one set of credentials: behind a gateway another user may get another server. */
export function createKeyOf(url: URL, remote: RemoteConfig): KeyOf {
  const base = `${url.origin}${url.pathname} ${digest([...remote.headers], remote.bearerTokenFile)}`;
  return (forwarded) => (forwarded === undefined ? base : `${base} ${digest(Object.entries(forwarded))}`);
}

/** Tells credentials apart without keeping them. */
function digest(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
