/** The parts of tools that a model or a user goes by, as digests that reveal a change. */
import { hash } from 'node:crypto';
import type { Frame } from '../../wire/frame.ts';
import { QUOTE } from '../../wire/json/ascii.ts';
import { canonicalJson } from '../../wire/json/canonical-json.ts';
import { itemSpans } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import { decodeString, type Span } from '../../wire/json/scan-json.ts';
import { MAX_PARSED_VALUES, readField } from '../vocabulary/payload.ts';

export const TOOL_PARTS = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;
export type ToolPart = (typeof TOOL_PARTS)[number];

/** The digest of each part that the tool has. */
export type ToolDigests = Readonly<Partial<Record<ToolPart, string>>>;

export interface ToolDefinition {
  readonly name: string;
  /**
   * `unclear` if clients could read a part in several ways, as one that occurs twice or in another case, or if a part
   * cannot be read.
   */
  readonly digests: ToolDigests | 'unclear';
}

export interface DefinitionPage {
  /** The tools of the page. Items without a clear name are left out. */
  readonly tools: readonly ToolDefinition[];
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined;
}

/** Reads the definitions in a result of `tools/list`. Undefined if the frame is no such result, or the list is too long. */
export function readDefinitions(frame: Frame): DefinitionPage | undefined {
  if (frame.kind !== 'result') return undefined;
  const list = findUnmistakable(frame, frame.payloadStart, 'tools');
  const spans = typeof list === 'object' ? itemSpans(frame.bytes, list.start) : undefined;
  if (spans === undefined) return undefined;
  const nextCursor = readField(frame, 'nextCursor');
  return {
    tools: spans.flatMap((span) => readDefinition(frame.bytes, span) ?? []),
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
  };
}

function readDefinition(bytes: Buffer, { start }: Span): ToolDefinition | undefined {
  const [name, ...parts] = findAllUnmistakable({ bytes }, start, ['name', ...TOOL_PARTS]);
  if (typeof name !== 'object' || bytes[name.start] !== QUOTE) return undefined;
  const text = decodeString(bytes, name.start, name.end);
  if (text === undefined) return undefined;
  const digests: Partial<Record<ToolPart, string>> = {};
  for (const [index, part] of TOOL_PARTS.entries()) {
    const found = parts[index];
    if (found === undefined) continue;
    const canonical = found === 'unclear' ? undefined : canonicalJson(bytes, found.start, MAX_PARSED_VALUES);
    if (canonical === undefined) return { name: text, digests: 'unclear' };
    digests[part] = hash('sha256', canonical, 'base64url');
  }
  return { name: text, digests };
}
