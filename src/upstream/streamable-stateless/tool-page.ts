import { type HeaderAnnotations, readHeaderAnnotations } from '../../mcp/header-annotations.ts';
import { asFields, parseSpan } from '../../mcp/payload.ts';
import { itemSpans } from '../../wire/array-items.ts';
import { COMMA } from '../../wire/ascii.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { findUniqueMember, type Span } from '../../wire/scan-json.ts';

export interface ListedTool {
  readonly name: string;
  readonly annotations: HeaderAnnotations;
}

/** One page of `tools/list`. */
export interface ToolPage {
  readonly tools: readonly ListedTool[];
  /** Where the next page begins; undefined: this is the last one. */
  readonly nextCursor: string | undefined;
  /** How long the server says the page stays good, ms. */
  readonly ttlMs: number;
  /**
   * The page as a client may see it.
   * [spec 2026-07-28 transports/streamable-http#schema-extension] must exclude tools with an invalid annotation
   */
  readonly shown: Frame;
}

/** Undefined: it is no page of tools. */
export function readToolPage(frame: Frame): ToolPage | undefined {
  const { bytes, payloadStart } = frame;
  if (frame.kind !== 'result') return undefined;
  const list = findUniqueMember(bytes, payloadStart, 'tools');
  const items = list === undefined || list === 'duplicate' ? undefined : itemSpans(bytes, list.start);
  if (items === undefined || list === undefined || list === 'duplicate') return undefined;
  const tools: ListedTool[] = [];
  const kept: Span[] = [];
  for (const item of items) {
    const tool = readTool(bytes, item);
    if (tool !== undefined) tools.push(tool);
    if (tool === undefined || !('invalid' in tool.annotations)) kept.push(item);
  }
  const nextCursor = readMember(frame, 'nextCursor');
  const ttlMs = readMember(frame, 'ttlMs');
  return {
    tools,
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 ? ttlMs : 0,
    shown: kept.length === items.length ? frame : editFrame(frame, [{ ...list, replacement: joinItems(bytes, kept) }]),
  };
}

function readTool(bytes: Buffer, item: Span): ListedTool | undefined {
  const { name, inputSchema } = asFields(parseSpan(bytes, item)) ?? {};
  return typeof name === 'string' ? { name, annotations: readHeaderAnnotations(inputSchema) } : undefined;
}

function readMember({ bytes, payloadStart }: Frame, key: string): unknown {
  const span = findUniqueMember(bytes, payloadStart, key);
  return span === undefined || span === 'duplicate' ? undefined : parseSpan(bytes, span);
}

const OPEN = Buffer.from('[');
const BETWEEN = Buffer.of(COMMA);
const CLOSE = Buffer.from(']');

/** The items byte for byte. */
function joinItems(bytes: Buffer, items: readonly Span[]): Buffer {
  const parts = items.flatMap(({ start, end }, index) => [index === 0 ? OPEN : BETWEEN, bytes.subarray(start, end)]);
  return Buffer.concat(items.length === 0 ? [OPEN, CLOSE] : [...parts, CLOSE]);
}
