/** Links to resources in the results of tools, where another server has a resource of the same URI. */
import { encodeJson, parseSpan } from '../mcp/vocabulary/payload.ts';
import { editFrame, type Frame } from '../wire/frame.ts';
import { itemSpans } from '../wire/json/object-editor.ts';
import { findMember } from '../wire/json/outline.ts';
import { type Edit, isStringToken } from '../wire/json/scan-json.ts';
import type { Member } from './members.ts';
import { prefixedUri } from './names.ts';

const LINK = Buffer.from('resource_link');

/** Names the resources in `moved` as clients have to ask for them; everything else stays. */
export function withLinks(result: Frame, member: Member, moved: ReadonlySet<string>): Frame {
  const { bytes, payloadStart, outline } = result;
  if (moved.size === 0 || result.kind !== 'result' || !bytes.includes(LINK, payloadStart)) return result;
  const content = findMember(bytes, payloadStart, 'content', outline);
  const edits: Edit[] = (content === undefined ? [] : (itemSpans(bytes, content.start) ?? [])).flatMap(({ start }) => {
    const type = findMember(bytes, start, 'type');
    const span = findMember(bytes, start, 'uri');
    if (span === undefined || type === undefined || !isStringToken(bytes, type.start, type.end, 'resource_link'))
      return [];
    const uri = parseSpan(bytes, span);
    return typeof uri === 'string' && moved.has(uri)
      ? [{ ...span, replacement: encodeJson(prefixedUri(member, uri)) }]
      : [];
  });
  return editFrame(result, edits);
}
