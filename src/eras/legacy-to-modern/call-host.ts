import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import type { ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { ClientProfile } from './client-profile.ts';
import type { PendingInput, PendingInputs } from './input-round.ts';
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
