import { toModernCapabilities } from '../../mcp/era-capabilities.ts';
import type { Implementation } from '../../mcp/meta.ts';
import { readServerInfo } from '../../mcp/modern-results.ts';
import { asFields, type Fields, readPayload } from '../../mcp/payload.ts';
import { findRevision, LATEST_LEGACY_REVISION, type Revision } from '../../mcp/revisions.ts';
import type { Frame } from '../../wire/frame.ts';

/** What a client told of itself in its handshake, in the words of the modern era. */
export interface ClientProfile {
  /** The one it is served in. */
  readonly revision: Revision;
  readonly capabilities: Fields;
  readonly clientInfo: Fields;
}

/** Reads an `initialize`. What it leaves out is taken for nothing; `fallback` names a client that has no name. */
export function readClientProfile(initialize: Frame, fallback: Implementation): ClientProfile {
  const { protocolVersion, capabilities, clientInfo } = readPayload(initialize) ?? {};
  // [spec 2025-11-25 basic/lifecycle#version-negotiation] a revision nobody knows gets the latest as an offer.
  const revision = findRevision(protocolVersion) ?? LATEST_LEGACY_REVISION;
  return {
    revision,
    capabilities: toModernCapabilities(asFields(capabilities) ?? {}, revision.id),
    clientInfo: readServerInfo(clientInfo) ?? { ...fallback },
  };
}
