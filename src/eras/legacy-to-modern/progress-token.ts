import { editFrame, withParams } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';

/**
 * A request that tells its receiver how to report progress. A token of the server's is replaced: it has no request open
 * that could be told. [spec 2025-11-25 basic/utilities/progress]
 */
export function withProgressToken(request: Frame, token: number): Frame {
  const { bytes, payloadStart } = request;
  const value = Buffer.from(String(token));
  const whole = Buffer.from(`{"progressToken":${token}}`);
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  if (params === undefined) return payloadStart === -1 ? withParams(request, inParams(whole)) : request;
  const meta = ObjectEditor.read(bytes, params.value('_meta')?.start ?? -1, ['progressToken']);
  meta?.set('progressToken', value);
  if (meta === undefined) params.set('_meta', whole);
  else params.edit('_meta', meta.edits());
  return editFrame(request, params.edits());
}

function inParams(meta: Buffer): Buffer {
  return Buffer.concat([Buffer.from('{"_meta":'), meta, Buffer.from('}')]);
}
