import { checkParamHeaders } from '../../mcp/classify/param-headers.ts';
import { type ListedTool, readToolPage } from '../../mcp/classify/tool-list.ts';
import { decodeHeaderValue, type HeaderMap } from '../../mcp/vocabulary/header-value.ts';
import { NAME_HEADER } from '../../mcp/vocabulary/headers.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { PARAM_HEADER_KEYWORD } from '../../mcp/vocabulary/schema-keywords.ts';
import { ToolCatalogue } from '../../relay/tool-catalogue.ts';
import type { Frame } from '../../wire/frame.ts';

/** Callers whose tools are remembered; those who listed theirs longest ago are forgotten first. */
const MAX_CALLERS = 256;

const KEYWORD = Buffer.from(`"${PARAM_HEADER_KEYWORD}"`);

/**
 * Which headers the tools want that a caller was shown, read from the lists that pass: a proxy that goes by a header
 * must not be told something else than the tool. What was never listed here is not checked.
 * [spec 2026-07-28 transports/streamable-http#server-behavior-for-custom-headers]
 */
export class ListedTools {
  readonly #callers = new Map<string, ToolCatalogue>();

  /** Takes the answer to a `tools/list` of this caller. */
  note(principal: string, answer: Frame): void {
    const known = this.#callers.get(principal);
    // Most servers name no headers; a native search over the bytes says so at once.
    if (answer.kind !== 'result' || (known === undefined && !answer.bytes.includes(KEYWORD))) return;
    const tools = known ?? new ToolCatalogue(wantsHeaders);
    tools.add(readToolPage(answer)?.tools ?? []);
    this.#callers.delete(principal);
    if (tools.size > 0) this.#remember(principal, tools);
  }

  #remember(principal: string, tools: ToolCatalogue): void {
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
    const tool = tools.find(decodeHeaderValue(name) ?? '');
    return tool && checkParamHeaders(tool.annotations.headers, request, headers);
  }
}

/** No client may use a tool whose annotations are not valid, so there is nothing to check. */
function wantsHeaders({ annotations }: ListedTool): boolean {
  return !('invalid' in annotations) && annotations.headers.length > 0;
}
