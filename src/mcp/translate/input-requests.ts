/**
 * Converts requests of a legacy server to entries of an `input_required` result for a modern client. [spec 2026-07-28
 * basic/patterns/mrtr#inputrequests]
 */
import { type Frame, replaceSpans, withPayload } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { type IdOrToken, joinMembers, resultFrame } from '../../wire/write-message.ts';
import { META_RELATED_TASK, META_SERVER_INFO } from '../vocabulary/meta.ts';
import { ELICIT, LIST_ROOTS } from '../vocabulary/methods.ts';
import { encodeJson, type Fields } from '../vocabulary/payload.ts';

/** The key of a call's n-th input request: unique within the call and readable in a log. */
export function inputKey(method: string, n: number): string {
  return `${method.split('/', 1)[0]}-${n}`;
}

/** Metadata of a legacy request that has no meaning inside an `input_required` result. */
const transportMeta = ['progressToken', META_RELATED_TASK] as const;

/**
 * Converts a server's request to an entry, as JSON text. The params stay byte for byte, except for members that the
 * modern era does not have.
 */
export function toInputRequest(frame: Frame): Buffer {
  const params = inputParams(frame);
  const method = Buffer.from(JSON.stringify(frame.method));
  return joinMembers(
    new Map(
      params === undefined
        ? [['method', method]]
        : [
            ['method', method],
            ['params', params],
          ],
    ),
  );
}

function inputParams({ bytes, payloadStart, method }: Frame): Buffer | undefined {
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta', 'task', 'elicitationId']);
  if (params === undefined) return undefined;
  params.remove('task');
  // [spec 2026-07-28 changelog] removed together with the notification that refers to it.
  if (method === ELICIT) params.remove('elicitationId');
  const meta = ObjectEditor.read(bytes, params.value('_meta')?.start ?? -1, transportMeta);
  for (const key of transportMeta) meta?.remove(key);
  const metaEdits = meta?.edits() ?? [];
  if (meta?.isEmpty) params.remove('_meta');
  else if (metaEdits.length > 0) params.edit('_meta', metaEdits);
  if (method === LIST_ROOTS && params.isEmpty) return undefined;
  const end = skipValue(bytes, payloadStart);
  const edits = params.edits().map(({ start, end: editEnd, replacement }) => {
    return { start: start - payloadStart, end: editEnd - payloadStart, replacement };
  });
  return replaceSpans(bytes.subarray(payloadStart, end), edits);
}

export interface InputRequiredParts {
  /** Results of `toInputRequest`, by key. */
  readonly requests: ReadonlyMap<string, Buffer>;
  readonly requestState: string;
  readonly serverInfo: Fields | undefined;
}

/** The result that asks the client for all these inputs and for a retry with the state. */
export function inputRequiredFrame(id: IdOrToken, parts: InputRequiredParts): Frame {
  const { requests, requestState, serverInfo } = parts;
  const members = new Map([
    ['resultType', encodeJson('input_required')],
    ['inputRequests', joinMembers(requests)],
    ['requestState', encodeJson(requestState)],
  ]);
  if (serverInfo !== undefined) members.set('_meta', encodeJson({ [META_SERVER_INFO]: serverInfo }));
  return withPayload(resultFrame(id, null), joinMembers(members));
}
