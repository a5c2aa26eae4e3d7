/** The tools of a `tools/list`, as far as their schemas want arguments repeated in headers. */

import type { Frame } from '../../wire/frame.ts';
import { findUniqueMember } from '../../wire/json/find-member.ts';
import { itemSpans } from '../../wire/json/object-editor.ts';
import type { Span } from '../../wire/json/scan-json.ts';
import { asFields, PartReader, parseSpan } from '../vocabulary/payload.ts';
import { PARAM_HEADER_KEYWORD } from '../vocabulary/schema-keywords.ts';
import { type HeaderAnnotations, readHeaderAnnotations } from './param-headers.ts';

export interface ListedTool {
  readonly name: string;
  readonly annotations: HeaderAnnotations;
}

export interface ToolList {
  /** The array that holds the tools. */
  readonly list: Span;
  readonly items: readonly {
    readonly span: Span;
    /** Undefined: it is no tool, for it has no name. */
    readonly tool: ListedTool | undefined;
  }[];
}

const KEYWORD = Buffer.from(PARAM_HEADER_KEYWORD);
/** Only escapes of this kind could spell the keyword otherwise. */
const UNICODE_ESCAPE = Buffer.from('\\u');
const NO_HEADERS: HeaderAnnotations = { headers: [] };

/** Undefined: it is no list of tools, or one with more in it than is looked at. */
export function readToolList({ kind, bytes, payloadStart, outline }: Frame): ToolList | undefined {
  if (kind !== 'result') return undefined;
  const list = findUniqueMember(bytes, payloadStart, 'tools', outline);
  const spans = typeof list === 'object' ? itemSpans(bytes, list.start) : undefined;
  if (spans === undefined || typeof list !== 'object') return undefined;
  const parts = new PartReader(bytes);
  const items = spans.map((span) => ({ span, tool: readTool(bytes, span, parts) }));
  return parts.isComplete ? { list, items } : undefined;
}

function readTool(bytes: Buffer, span: Span, parts: PartReader): ListedTool | undefined {
  const text = bytes.subarray(span.start, span.end);
  // Most tools name no headers; a native search over the bytes says so at once.
  if (!text.includes(KEYWORD) && !text.includes(UNICODE_ESCAPE)) {
    const found = findUniqueMember(bytes, span.start, 'name');
    const name = typeof found === 'object' ? parseSpan(bytes, found) : undefined;
    return typeof name === 'string' ? { name, annotations: NO_HEADERS } : undefined;
  }
  const { name, inputSchema } = asFields(parts.read(span)) ?? {};
  return typeof name === 'string' ? { name, annotations: readHeaderAnnotations(inputSchema) } : undefined;
}
