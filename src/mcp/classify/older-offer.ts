import { editFrame, type Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { isStringArray } from '../vocabulary/discover.ts';
import { asFields, readField } from '../vocabulary/payload.ts';
import { findCommonLegacy, type RevisionId } from '../vocabulary/revisions.ts';

export interface OlderOffer {
  readonly revision: RevisionId;
  /** The revision that was turned down. */
  readonly refused: string;
  /** The `initialize` with the older revision; all else in it is as it was. */
  readonly frame: Frame;
}

/**
 * The handshake to try after a server has refused one for its revision: with the newest legacy revision of those that it
 * lists. [spec 2025-11-25 basic/lifecycle#error-handling] Undefined: the error lists none other than the one refused.
 * @param data that of the error with which the server refused
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
