/** Errors of one era as the other one has them: what both say alike stays byte for byte. */
import { editFrame, withPayload } from '../wire/edit-frame.ts';
import type { Frame, JsonRpcId } from '../wire/frame.ts';
import { ObjectEditor } from '../wire/object-editor.ts';
import { skipValue } from '../wire/scan-json.ts';
import { errorFrame } from '../wire/write-message.ts';
import { asFields, type Fields, readPayload } from './payload.ts';
import type { RpcError } from './rpc-errors.ts';

export interface ErrorTranslation {
  readonly id: JsonRpcId;
  /** What was read from the response. */
  readonly said: RpcError;
  /** What was made of it. Values that it has taken over are the very same ones. */
  readonly meant: RpcError;
}

/** Takes nothing but the error from the response: some servers write a `result` of null beside it. */
export function translatedError(frame: Frame, { id, said, meant }: ErrorTranslation): Frame {
  const answer = errorFrame(id, meant);
  const written = readPayload(frame);
  const error = ObjectEditor.read(frame.bytes, frame.payloadStart, ['code', 'message', 'data']);
  // Not JSON, or no error that could be edited.
  if (written === undefined || error === undefined) return answer;
  if (written.code !== meant.code) error.set('code', encode(meant.code));
  if (written.message !== meant.message) error.set('message', encode(meant.message));
  if (said.data !== meant.data) changeData(frame.bytes, error, [said.data, meant.data]);
  const { bytes, payloadStart } = editFrame(frame, error.edits());
  return withPayload(answer, bytes.subarray(payloadStart, skipValue(bytes, payloadStart)));
}

function changeData(bytes: Buffer, error: ObjectEditor, [said, meant]: readonly [unknown, unknown]): void {
  const [before, after] = [asFields(said), asFields(meant)];
  const changed = Object.keys(after ?? {}).filter((key) => !isSame(key, before ?? {}, after ?? {}));
  const data = before && after && ObjectEditor.read(bytes, error.value('data')?.start ?? -1, changed);
  if (data === undefined) return error.set('data', encode(meant));
  for (const key of changed) data.set(key, encode(after?.[key]));
  error.edit('data', data.edits());
}

function isSame(key: string, before: Fields, after: Fields): boolean {
  return Object.hasOwn(before, key) && before[key] === after[key];
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
