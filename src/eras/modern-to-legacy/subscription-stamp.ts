import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { editFrame, withParams } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';

/**
 * The notification as part of a subscription; `id` is the token of the `subscriptions/listen` as the client wrote it.
 * [spec 2026-07-28 basic/patterns/subscriptions#receiving-notifications]
 */
export function stampSubscription(frame: Frame, id: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  const own = Buffer.concat([Buffer.from(`{${JSON.stringify(META_SUBSCRIPTION_ID)}:`), id, Buffer.from('}')]);
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  if (params === undefined) return withParams(frame, Buffer.concat([Buffer.from('{"_meta":'), own, Buffer.from('}')]));
  const meta = ObjectEditor.read(bytes, params.value('_meta')?.start ?? -1, [META_SUBSCRIPTION_ID]);
  if (meta === undefined) {
    params.set('_meta', own);
  } else {
    meta.set(META_SUBSCRIPTION_ID, id);
    params.edit('_meta', meta.edits());
  }
  return editFrame(frame, params.edits());
}
