import type { Clock } from '../../deps.ts';
import type { RequestMetadata } from '../../mcp/classify/request-metadata.ts';
import type { ModernRevisionId } from '../../mcp/vocabulary/revisions.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import type { ClientProfile } from './client-profile.ts';
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
