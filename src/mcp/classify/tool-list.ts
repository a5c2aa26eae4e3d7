/** The tools of a `tools/list`, as far as they decide how a tool is called, and whether it may be shown. */

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
  /** Which of its arguments are repeated in headers. */
  readonly annotations: HeaderAnnotations;
  /** It runs only as a task of 2025-11-25. [spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation] */
  readonly isTask: boolean;
}

interface ToolList {
  /** The array that holds the tools. */
  readonly list: Span;
  readonly items: readonly {
    readonly span: Span;
    /** Undefined: it is no tool, for it has no name. */
    readonly tool: ListedTool | undefined;
  }[];
}

const KEYWORD = Buffer.from(PARAM_HEADER_KEYWORD);
const TASK_SUPPORT = Buffer.from('taskSupport');
/** Only escapes of this kind could spell them otherwise. */
const UNICODE_ESCAPE = Buffer.from('\\u');
const NO_HEADERS: HeaderAnnotations = { headers: [] };

/** Undefined: it is no list of tools, or one with more in it than is looked at. */
function readToolList(frame: Frame): ToolList | undefined {
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
  // Most tools name neither headers nor tasks; a native search over the bytes says so at once.
  const hasEscape = text.includes(UNICODE_ESCAPE);
  const isTask = (hasEscape || text.includes(TASK_SUPPORT)) && requiresTask(bytes, span);
  const name = parseFound(bytes, findUnmistakable({ bytes }, span.start, 'name'));
  if (typeof name !== 'string') return undefined;
  if (!hasEscape && !text.includes(KEYWORD)) return { name, annotations: NO_HEADERS, isTask };
  const tool = asFields(parts.read(span));
  return tool && { name, annotations: readHeaderAnnotations(tool.inputSchema), isTask };
}

function requiresTask(bytes: Buffer, { start }: Span): boolean {
  return asFields(parseFound(bytes, findUnmistakable({ bytes }, start, 'execution')))?.taskSupport === 'required';
}

function parseFound(bytes: Buffer, found: Unmistakable): unknown {
  return typeof found === 'object' ? parseSpan(bytes, found) : undefined;
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
  const read = readToolList(frame);
  if (read === undefined) return undefined;
  const { list, items } = read;
  const kept = items.filter(({ tool }) => tool === undefined || !('invalid' in tool.annotations));
  const { nextCursor, ttlMs } = readFields(frame, ['nextCursor', 'ttlMs']);
  const replacement = kept.length === items.length ? undefined : joinItems(frame.bytes, kept);
  return {
    tools: items.flatMap(({ tool }) => tool ?? []),
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 ? ttlMs : 0,
    shown: replacement === undefined ? frame : editFrame(frame, [{ ...list, replacement }]),
  };
}

/**
 * A result of `tools/list` without the tools of these names, and without what cannot be told to have another. Undefined: it
 * cannot be told which tools it lists.
 */
export function withoutTools(frame: Frame, isHidden: (name: string) => boolean): Frame | undefined {
  const { bytes, payloadStart } = frame;
  if (findUnmistakable(frame, payloadStart, 'tools') === undefined) return frame;
  const read = readToolList(frame);
  if (read === undefined) return undefined;
  const kept = read.items.filter(({ tool }) => tool !== undefined && !isHidden(tool.name));
  if (kept.length === read.items.length) return frame;
  return editFrame(frame, [{ ...read.list, replacement: joinItems(bytes, kept) }]);
}

const OPEN = Buffer.from('[');
const BETWEEN = Buffer.of(COMMA);
const CLOSE = Buffer.from(']');

/** The items byte for byte. */
function joinItems(bytes: Buffer, items: ToolList['items']): Buffer {
  const parts = items.flatMap(({ span: { start, end } }, index) => [
    index === 0 ? OPEN : BETWEEN,
    bytes.subarray(start, end),
  ]);
  return Buffer.concat(items.length === 0 ? [OPEN, CLOSE] : [...parts, CLOSE]);
}
