/** What the calls of a legacy client need of the translator that they run in: who the client is, and what they share. */
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import {
  MAX_CAPABILITIES_BYTES,
  MAX_CAPABILITIES_LENGTH,
  toModernCapabilities,
} from '../../mcp/translate/capabilities.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import { shortInfo } from '../../mcp/vocabulary/client-declarations.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields, readFields } from '../../mcp/vocabulary/payload.ts';
import {
  findRevision,
  LATEST_LEGACY_REVISION,
  type ModernRevisionId,
  type Revision,
} from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { PendingInput, PendingInputs } from './pending-inputs.ts';
import type { UpstreamRequests } from './upstream-requests.ts';

/** What a call needs of the translator it runs in. */
export interface ClientCallHost {
  /** The name of the server in error messages. */
  readonly serverName: string;
  readonly clock: Clock;
  readonly randomId: () => string;
  readonly profile: ClientProfile;
  /** The client's side. */
  readonly listener: ServerListener;
  readonly requests: UpstreamRequests;
  readonly pendingInputs: PendingInputs;
  /** Where it counts what a call holds for its rounds; nothing yet. */
  openHeld(): HeldBytes;
  /** The envelope of a request that is sent now. */
  metadata(): RequestMetadata;
  /** The server speaks this one from now on. */
  useRevision(revision: ModernRevisionId): void;
  /** Asks the client, on the lane of its call. */
  ask(input: PendingInput, question: Frame, exchange: Exchange): void;
  /** A notification of the server about a call, if the client is to have it. */
  tell(frame: Frame, exchange: Exchange): void;
  /** The result as the client's revision has it. */
  toLegacyResult(result: Frame, request: Frame): Frame;
}

/** Keeps the calls of a session. */
export interface CallKeeper<Call> extends ClientCallHost {
  /** The call is over; nothing more comes of it. */
  ended(call: Call): void;
}

// ---- What a client is told when its call ends between the eras.

/** The server did what its revision forbids. */
export function violation(serverName: string, fault: string): BridgeError {
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${serverName} violates the protocol: ${fault}.`);
}

export function tooManyRounds(serverName: string, maxRounds: number): BridgeError {
  return new BridgeError(
    'ERR_CLIENT_INPUT',
    `${serverName} asked for input ${maxRounds} times within one call, the most allowed, and wants more.`,
  );
}

export function noCapacity(serverName: string): BridgeError {
  return new BridgeError(
    'ERR_CLIENT_INPUT',
    `${serverName} asked for input, but the memory for calls that wait for their clients is used up; try again later.`,
  );
}

export function errorAnswer(id: JsonRpcId, error: BridgeError): Frame {
  return errorFrame(id, rpcErrorOf(error));
}

/**
 * The call needed something that its client did not give. Of a tool the model should hear it, so that it can go on
 * without; anything else fails.
 */
export function inputFailure(id: JsonRpcId, method: string, error: BridgeError): Frame {
  if (method !== CALL_TOOL) return errorAnswer(id, error);
  return resultFrame(id, { content: [{ type: 'text', text: error.message }], isError: true });
}

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
