/** Messages of sampling for a revision whose messages hold one block, and no tools. */
import type { InputFault } from './input-required.ts';
import { asFields, type Fields } from './payload.ts';
import type { RevisionFeatures } from './revision-features.ts';

/** The params of a request. [spec 2026-07-28 client/sampling] */
export function olderSamplingParams(
  params: Fields,
  features: RevisionFeatures,
): { readonly value: Fields } | InputFault {
  if (params.tools !== undefined || params.toolChoice !== undefined) return { fault: 'the client cannot use tools' };
  if (!Array.isArray(params.messages)) return { value: params };
  const messages: unknown[] = [];
  for (const message of params.messages) {
    const fields = asFields(message);
    const content = olderContent(fields?.content, features);
    if ('fault' in content) return content;
    messages.push(fields === undefined ? message : { ...fields, content: content.value });
  }
  return { value: { ...params, messages } };
}

function olderContent(content: unknown, features: RevisionFeatures): { readonly value: unknown } | InputFault {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  for (const block of blocks) {
    const type = asFields(block)?.type;
    if (type === 'tool_use' || type === 'tool_result') return { fault: 'the other side cannot use tools' };
    if (type === 'audio' && !features.audio) return { fault: 'the other side cannot take audio' };
  }
  if (blocks.length === 1) return { value: blocks[0] };
  const texts = blocks.map(readText).filter((text) => text !== undefined);
  if (texts.length === 0 || texts.length < blocks.length) return { fault: 'the other side takes one block of content' };
  return { value: { type: 'text', text: texts.join('\n\n') } };
}

function readText(block: unknown): string | undefined {
  const fields = asFields(block);
  return fields?.type === 'text' && typeof fields.text === 'string' ? fields.text : undefined;
}
