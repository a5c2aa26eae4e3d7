import { RecentNames } from '../../collections/recent-names.ts';
import { checkParamHeaders, lengthOf, type ParamHeader } from '../../mcp/classify/param-headers.ts';
import { readToolList } from '../../mcp/classify/tool-list.ts';
import { decodeHeaderValue, type HeaderMap } from '../../mcp/vocabulary/header-value.ts';
import { NAME_HEADER } from '../../mcp/vocabulary/headers.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { PARAM_HEADER_KEYWORD } from '../../mcp/vocabulary/schema-keywords.ts';
import type { Frame } from '../../wire/frame.ts';

/** Callers whose tools are remembered; those who listed theirs longest ago are forgotten first. */
const MAX_CALLERS = 256;
/** Tools with headers remembered of one caller, and characters of them; later ones push out the first. */
export const TOOL_LIMITS = { count: 1000, length: 256 * 1024 };

const KEYWORD = Buffer.from(`"${PARAM_HEADER_KEYWORD}"`);

type ToolHeaders = RecentNames<readonly ParamHeader[]>;

/**
 * Which headers the tools want that a caller was shown, read from the lists that pass: a proxy that goes by a header
 * must not be told something else than the tool. What was never listed here is not checked.
 * [spec 2026-07-28 transports/streamable-http#server-behavior-for-custom-headers]
 */
export class ListedTools {
  readonly #callers = new Map<string, ToolHeaders>();

  /** Takes the answer to a `tools/list` of this caller. */
  note(principal: string, answer: Frame): void {
    const known = this.#callers.get(principal);
    // Most servers name no headers; a native search over the bytes says so at once.
    if (answer.kind !== 'result' || (known === undefined && !answer.bytes.includes(KEYWORD))) return;
    const tools: ToolHeaders = known ?? new RecentNames(TOOL_LIMITS);
    for (const { tool } of readToolList(answer)?.items ?? []) {
      if (tool === undefined) continue;
      const { name, annotations } = tool;
      // No client may use a tool whose annotations are not valid, so there is nothing to check.
      const headers = 'invalid' in annotations ? [] : annotations.headers;
      if (headers.length === 0) tools.delete(name);
      else tools.set(name, headers, lengthOf({ headers }));
    }
    this.#callers.delete(principal);
    if (tools.size > 0) this.#remember(principal, tools);
  }

  #remember(principal: string, tools: ToolHeaders): void {
    const [oldest] = this.#callers.keys();
    if (oldest !== undefined && this.#callers.size >= MAX_CALLERS) this.#callers.delete(oldest);
    this.#callers.set(principal, tools);
  }

  /** What is wrong with the headers of a request whose other headers were checked; undefined: nothing. */
  findFault(principal: string, request: Frame, headers: HeaderMap): string | undefined {
    if (request.method !== CALL_TOOL) return undefined;
    const tools = this.#callers.get(principal);
    const name = headers[NAME_HEADER];
    if (tools === undefined || typeof name !== 'string') return undefined;
    // The header was checked to name the same tool as the body.
    const annotations = tools.get(decodeHeaderValue(name) ?? '');
    return annotations && checkParamHeaders(annotations, request, headers);
  }
}
