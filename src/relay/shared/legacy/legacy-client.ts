import type { BridgeError } from '../../../errors.ts';
import { LATEST_LEGACY_REVISION, type RevisionId } from '../../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../../wire/frame.ts';
import { SharedClient } from '../shared-client.ts';
import type { ClientIdentity } from './attribution.ts';

/**
 * A client of a shared legacy server. It gets the server's messages as they are, as soon as they come, unless its kind of
 * client says otherwise.
 */
export abstract class LegacyClient extends SharedClient {
  /** Tells the client's calls from those of others. It may be kept longer than the client, so it must be small. */
  abstract readonly identity: ClientIdentity;
  /** True if the client was told what the server offers. */
  abstract readonly isIntroduced: boolean;
  /** True if the client has finished its handshake and may be told things. */
  abstract readonly isInitialized: boolean;

  /** Reads what the client's `initialize` says about it. Returns the revision that it is answered in. */
  introduce(_initialize: Frame, _serverRevision: unknown): RevisionId {
    return LATEST_LEGACY_REVISION.id;
  }

  finishHandshake(): void {}

  /** Returns the server's answer as this client gets it. */
  answered(answer: Frame, _call: AnsweredCall): Frame {
    return answer;
  }

  /** Returns the question as this client may see it, or why it cannot be asked. */
  asked(question: Frame): Frame | BridgeError {
    return question;
  }

  /** Asks the client as soon as it may be asked. `bytes` is the size of the question, which was found to be possible. */
  askInTime(ask: () => void, _bytes: number): void {
    ask();
  }

  /** Called when the client has left. */
  left(): void {}
}

/** The call that an answer of the server belongs to. */
export interface AnsweredCall {
  readonly method: string;
  /** The id of the request as its client wrote it; the answer has that of the shared link. */
  readonly idToken: Buffer;
}
