import type { InputFault } from '../../mcp/classify/input-required.ts';
import { toLegacyInput } from '../../mcp/translate/downgrade-inputs.ts';
import { downgradeResult } from '../../mcp/translate/downgrade-results.ts';
import { findRevision, isEarlierRevision, type RevisionId } from '../../mcp/vocabulary/revisions.ts';
import { withPayload } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { skipValue } from '../../wire/json/scan-json.ts';

/** A client that asked for an older revision than the server they share speaks: it must not see newer shapes. */
export class OlderClient {
  readonly #revision: RevisionId;

  private constructor(revision: RevisionId) {
    this.#revision = revision;
  }

  /** Undefined: the client knows all that the server does, and everything passes as it is. */
  static of(clientRevision: RevisionId, serverRevision: unknown): OlderClient | undefined {
    const server = findRevision(serverRevision);
    return server !== undefined && isEarlierRevision(clientRevision, server.id)
      ? new OlderClient(clientRevision)
      : undefined;
  }

  /** `method`: of the request that it answers. */
  result(frame: Frame, method: string): Frame {
    return downgradeResult(frame, { method, clientRevision: this.#revision });
  }

  /** A request of the server; a fault: there are no words for it in the revision of the client. */
  question(frame: Frame): Frame | InputFault {
    const { bytes, payloadStart, method = '' } = frame;
    const params = payloadStart === -1 ? undefined : bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
    // No revision that has another after it knows ids of elicitations.
    const older = toLegacyInput({ method, params }, { clientRevision: this.#revision, elicitationId: '' });
    if ('fault' in older) return older;
    return older.params === undefined || older.params === params ? frame : withPayload(frame, older.params);
  }
}
