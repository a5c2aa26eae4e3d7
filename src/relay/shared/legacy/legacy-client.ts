import type { BridgeError } from '../../../errors.ts';
import type { RevisionId } from '../../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../../wire/frame.ts';
import type { ClientIdentity } from './attribution.ts';

/** Adapts the messages of a shared legacy server to one of its clients, and says when the client may have them. */
export interface LegacyClient {
  /** Tells the client's calls from those of others. It may be kept longer than the client, so it must be small. */
  readonly identity: ClientIdentity;
  /** The client was told what the server offers. */
  readonly isIntroduced: boolean;
  /** The client has finished its handshake and may be told things. */
  readonly isInitialized: boolean;
  /** Reads what the client's `initialize` says about it. Returns the revision that it is answered in. */
  introduce(initialize: Frame, serverRevision: unknown): RevisionId;
  finishHandshake(): void;
  /** The server's answer as this client gets it. */
  answered(answer: Frame, call: AnsweredCall): Frame;
  /** The question as this client may see it, or why it cannot be asked. */
  asked(question: Frame): Frame | BridgeError;
  /** Asks the client as soon as it may be asked. `bytes`: of the question that was found to be possible. */
  askInTime(ask: () => void, bytes: number): void;
  left(): void;
}

/** The call that an answer of the server belongs to. */
export interface AnsweredCall {
  readonly method: string;
  /** The id of the request as its client wrote it; the answer has that of the shared link. */
  readonly idToken: Buffer;
}
