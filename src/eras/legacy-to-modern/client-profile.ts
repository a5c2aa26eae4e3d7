import { BridgeError } from '../../errors.ts';
import {
  MAX_CAPABILITIES_BYTES,
  MAX_CAPABILITIES_LENGTH,
  toModernCapabilities,
} from '../../mcp/translate/capabilities.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import { shortInfo } from '../../mcp/vocabulary/client-declarations.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { asFields, type Fields, readFields } from '../../mcp/vocabulary/payload.ts';
import { findRevision, LATEST_LEGACY_REVISION, type Revision } from '../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';

/** What a client told of itself in its handshake, in the words of the modern era. */
export interface ClientProfile {
  /** The one it is served in. */
  readonly revision: Revision;
  readonly capabilities: Fields;
  readonly clientInfo: Fields;
}

/**
 * Reads an `initialize`. What it leaves out is taken for nothing; `fallback` names a client that has no name. An error:
 * it declares more than can be repeated with each request.
 */
export function readClientProfile(initialize: Frame, fallback: Implementation): ClientProfile | BridgeError {
  const { bytes, payloadStart } = initialize;
  const written = payloadStart === -1 ? undefined : findMember(bytes, payloadStart, 'capabilities');
  const writtenBytes = written === undefined ? 0 : written.end - written.start;
  if (writtenBytes > MAX_CAPABILITIES_BYTES) return tooManyCapabilities(writtenBytes);
  const { protocolVersion, capabilities, clientInfo } = readFields(initialize, [
    'protocolVersion',
    'capabilities',
    'clientInfo',
  ]);
  // [spec 2025-11-25 basic/lifecycle#version-negotiation] a revision nobody knows gets the latest as an offer.
  const revision = findRevision(protocolVersion) ?? LATEST_LEGACY_REVISION;
  const declared = toModernCapabilities(asFields(capabilities) ?? {}, revision.id);
  const { length } = JSON.stringify(declared);
  if (length > MAX_CAPABILITIES_LENGTH) return tooManyCapabilities(length);
  return { revision, capabilities: declared, clientInfo: shortInfo(readServerInfo(clientInfo) ?? { ...fallback }) };
}

function tooManyCapabilities(length: number): BridgeError {
  const message = `The capabilities of this client have ${length} characters as JSON; a modern server, which is told them with each request, can be told ${MAX_CAPABILITIES_LENGTH}.`;
  return new BridgeError('ERR_WIRE_MESSAGE', message);
}
