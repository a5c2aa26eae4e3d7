/** The interface between the calls of a legacy client and the translator that runs them. */
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
import type { Call } from '../../relay/call.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { PendingInput, PendingInputs } from './pending-inputs.ts';
import type { UpstreamRequests } from './upstream-requests.ts';

/** The translator, as the calls of its client use it. */
export interface CallAtModernServerHost {
  /** The name of the server in error messages. */
  readonly serverName: string;
  readonly clock: Clock;
  readonly randomId: () => string;
  readonly profile: ClientProfile;
  /** The relay, which passes messages on to the client. */
  readonly listener: ServerListener;
  readonly requests: UpstreamRequests;
  readonly pendingInputs: PendingInputs;
  /** Opens an account for the bytes that a call holds for its rounds. It starts at 0. */
  openHeld(): HeldBytes;
  /** Returns the metadata of a request that is sent now. */
  metadata(): RequestMetadata;
  /** Called when the server speaks this revision from now on. */
  useRevision(revision: ModernRevisionId): void;
  /** Sends a question to the client, on the lane of its call. */
  ask(input: PendingInput, question: Frame, call: Call): void;
  /** Passes on a notification about a call, unless the client does not want it. */
  tell(frame: Frame, call: Call): void;
  /** Returns the result in the form that the client's revision has. */
  toLegacyResult(result: Frame, request: Frame): Frame;
}

/** Owns the calls of a session. */
export interface CallKeeper<AtServer> extends CallAtModernServerHost {
  /** Called when the call is over. */
  ended(atServer: AtServer): void;
}

// ---- Errors of calls that end between the eras.

/** Returns the error for a server that did what its revision forbids. */
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
 * Returns the answer to a call whose client did not give the input that it needed. For a tool it is a result, so that
 * the model reads the reason and can continue without the tool. For other methods it is an error.
 */
export function inputFailure(id: JsonRpcId, method: string, error: BridgeError): Frame {
  if (method !== CALL_TOOL) return errorAnswer(id, error);
  return resultFrame(id, { content: [{ type: 'text', text: error.message }], isError: true });
}

/** A client's description of itself in its handshake, in the form of the modern era. */
export interface ClientProfile {
  /** The revision that the client is served in. */
  readonly revision: Revision;
  readonly capabilities: Fields;
  readonly clientInfo: Fields;
}

/**
 * Reads an `initialize`. Missing members count as empty, and `fallback` is used for a client without a name. Returns an
 * error if the client declares more capabilities than each request can repeat.
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
  // An unknown revision is answered with an offer of the latest one.
  // [spec 2025-11-25 basic/lifecycle#version-negotiation]
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
