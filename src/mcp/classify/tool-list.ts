/** The tools of a `tools/list` result: the parts that decide how a tool is called and whether it may be shown. */

import { editFrame, type Frame } from '../../wire/frame.ts';
import { COMMA } from '../../wire/json/ascii.ts';
import { itemSpans } from '../../wire/json/object-editor.ts';
import { findUnmistakable, type Unmistakable } from '../../wire/json/outline.ts';
import type { Span } from '../../wire/json/scan-json.ts';
import { asFields, PartReader, parseSpan, readFields } from '../vocabulary/payload.ts';
import { PARAM_HEADER_KEYWORD } from '../vocabulary/schema-keywords.ts';
import { type HeaderAnnotations, readHeaderAnnotations } from './param-headers.ts';

export interface ListedTool {
  readonly name: string;
  /** The arguments that are repeated in headers. */
  readonly annotations: HeaderAnnotations;
  readonly taskSupport: TaskSupport;
}

/**
 * States whether a tool is called as a task: `required` is always, `optional` as the client likes, `forbidden`, the
 * default, is never. [spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation]
 */
export type TaskSupport = 'required' | 'optional' | 'forbidden';

export interface ToolList {
  /** The array that holds the tools. */
  readonly list: Span;
  readonly items: readonly {
    readonly span: Span;
    /** Undefined if the item has no name and therefore is no tool. */
    readonly tool: ListedTool | undefined;
  }[];
}

const KEYWORD = Buffer.from(PARAM_HEADER_KEYWORD);
const TASK_SUPPORT = Buffer.from('taskSupport');
/** Only escapes of this kind could spell the two keys above otherwise. */
const UNICODE_ESCAPE = Buffer.from('\\u');
const NO_HEADERS: HeaderAnnotations = { headers: [] };

/** Returns undefined if the frame is no list of tools, or has more values than are parsed. */
export function readToolList(frame: Frame): ToolList | undefined {
  const { kind, bytes } = frame;
  if (kind !== 'result') return undefined;
  const list = findUnmistakable(frame, frame.payloadStart, 'tools');
  const spans = typeof list === 'object' ? itemSpans(bytes, list.start) : undefined;
  if (spans === undefined || typeof list !== 'object') return undefined;
  const parts = new PartReader(bytes);
  const items = spans.map((span) => ({ span, tool: readTool(bytes, span, parts) }));
  return parts.isComplete ? { list, items } : undefined;
}

function readTool(bytes: Buffer, span: Span, parts: PartReader): ListedTool | undefined {
  const text = bytes.subarray(span.start, span.end);
  // Most tools name neither headers nor tasks, which a native search over the bytes shows without parsing.
  const hasEscape = text.includes(UNICODE_ESCAPE);
  const taskSupport = hasEscape || text.includes(TASK_SUPPORT) ? readTaskSupport(bytes, span) : 'forbidden';
  const name = parseFound(bytes, findUnmistakable({ bytes }, span.start, 'name'));
  if (typeof name !== 'string') return undefined;
  if (!hasEscape && !text.includes(KEYWORD)) return { name, annotations: NO_HEADERS, taskSupport };
  const tool = asFields(parts.read(span));
  return tool && { name, annotations: readHeaderAnnotations(tool.inputSchema), taskSupport };
}

function readTaskSupport(bytes: Buffer, { start }: Span): TaskSupport {
  const support = asFields(parseFound(bytes, findUnmistakable({ bytes }, start, 'execution')))?.taskSupport;
  return support === 'required' || support === 'optional' ? support : 'forbidden';
}

function parseFound(bytes: Buffer, found: Unmistakable): unknown {
  return typeof found === 'object' ? parseSpan(bytes, found) : undefined;
}

/**
 * A page of `tools/list`. `nextCursor` is undefined on the last page. `ttlMs` is how long the server says the page
 * stays valid.
 */
export interface ToolPage {
  readonly tools: readonly ListedTool[];
  readonly nextCursor: string | undefined;
  readonly ttlMs: number;
  /**
   * The page as a client may see it.
   * [spec 2026-07-28 transports/streamable-http#schema-extension] must exclude tools with an invalid annotation
   */
  readonly shown: Frame;
}

/** Returns undefined if the frame is no page of tools. */
export function readToolPage(frame: Frame): ToolPage | undefined {
  const read = readToolList(frame);
  if (read === undefined) return undefined;
  const { list, items } = read;
  const kept = items.filter(({ tool }) => tool === undefined || !('invalid' in tool.annotations));
  const { nextCursor, ttlMs } = readFields(frame, ['nextCursor', 'ttlMs']);
  const replacement =
    kept.length === items.length
      ? undefined
      : joinTools(kept.map(({ span: { start, end } }) => frame.bytes.subarray(start, end)));
  return {
    tools: items.flatMap(({ tool }) => tool ?? []),
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 ? ttlMs : 0,
    shown: replacement === undefined ? frame : editFrame(frame, [{ ...list, replacement }]),
  };
}

const OPEN = Buffer.from('[');
const BETWEEN = Buffer.of(COMMA);
const CLOSE = Buffer.from(']');

/** Returns a list of these tools, each byte for byte. */
export function joinTools(tools: readonly Buffer[]): Buffer {
  const parts = tools.flatMap((tool, index) => [index === 0 ? OPEN : BETWEEN, tool]);
  return Buffer.concat(tools.length === 0 ? [OPEN, CLOSE] : [...parts, CLOSE]);
}
