import { editFrame, type Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { isStringArray } from '../vocabulary/discover.ts';
import { asFields, readField } from '../vocabulary/payload.ts';
import { findCommonLegacy, type RevisionId } from '../vocabulary/revisions.ts';

export interface OlderOffer {
  readonly revision: RevisionId;
  /** The revision that the server rejected. */
  readonly refused: string;
  /** The `initialize` with the older revision, otherwise unchanged. */
  readonly frame: Frame;
}

/**
 * Returns the `initialize` to try after a server rejected one for its revision: with the newest legacy revision among
 * those that its error lists. [spec 2025-11-25 basic/lifecycle#error-handling] Undefined if the error lists no other
 * revision that is known here.
 *
 * @param data that of the error with which the server rejected the first
 */
export function findOlderOffer(initialize: Frame, data: unknown): OlderOffer | undefined {
  const supported = asFields(data)?.supported;
  const refused = readField(initialize, 'protocolVersion');
  if (!isStringArray(supported) || typeof refused !== 'string') return undefined;
  const revision = findCommonLegacy(supported.filter((id) => id !== refused));
  if (revision === undefined) return undefined;
  const params = ObjectEditor.readIn(initialize, initialize.payloadStart, ['protocolVersion']);
  params?.set('protocolVersion', Buffer.from(JSON.stringify(revision)));
  return { revision, refused, frame: editFrame(initialize, params?.edits() ?? []) };
}
