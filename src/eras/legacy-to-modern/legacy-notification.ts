import { META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';

/** What a subscription brings, as legacy clients know it: they have none. */
export function withoutSubscriptionId(frame: Frame): Frame {
  const { bytes, payloadStart } = frame;
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  const meta = ObjectEditor.read(bytes, params?.value('_meta')?.start ?? -1, [META_SUBSCRIPTION_ID]);
  if (params === undefined || meta?.value(META_SUBSCRIPTION_ID) === undefined) return frame;
  meta.remove(META_SUBSCRIPTION_ID);
  if (meta.isEmpty) params.remove('_meta');
  else params.edit('_meta', meta.edits());
  return editFrame(frame, params.edits());
}
