import { readFields } from '../../mcp/payload.ts';
import { type ListedTool, readToolList, type ToolList } from '../../mcp/tool-list.ts';
import { COMMA } from '../../wire/ascii.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';

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
