import { RecentNames } from '../collections/bounded-collections.ts';
import { lengthOf } from '../mcp/classify/param-headers.ts';
import { type ListedTool, readToolPage, type ToolPage } from '../mcp/classify/tool-list.ts';
import type { Frame } from '../wire/frame.ts';

/** Number of tools that are remembered, and characters of their annotations. Later tools replace the first. */
export const TOOL_LIMITS = { count: 4096, length: 256 * 1024 };
/** Pages that are read of one list. Tools on further pages stay unknown. */
export const MAX_PAGES = 50;

/**
 * A server's descriptions of its tools, as far as the bridge uses them. The owner of a catalog decides which clients
 * it is for, which tools are remembered, and how long it is trusted.
 */
export class ToolCatalog {
  readonly #isKept: (tool: ListedTool) => boolean;
  readonly #tools = new RecentNames<ListedTool>(TOOL_LIMITS);

  /** @param isKept returns true for tools to remember. Other tools are treated as if they had never been listed. */
  constructor(isKept: (tool: ListedTool) => boolean) {
    this.#isKept = isKept;
  }

  get size(): number {
    return this.#tools.size;
  }

  find(name: string): ListedTool | undefined {
    return this.#tools.get(name);
  }

  /** Adds tools, and replaces earlier descriptions of the same tools. */
  add(tools: Iterable<ListedTool>): void {
    for (const tool of tools) {
      if (this.#isKept(tool)) this.#tools.set(tool.name, tool, lengthOf(tool.annotations));
      else this.#tools.delete(tool.name);
    }
  }

  *[Symbol.iterator](): Generator<ListedTool, undefined> {
    for (const [, tool] of this.#tools) yield tool;
  }
}

/** A list of tools that is read page by page. The pages are not kept, since each may be large. */
export class ToolListing {
  readonly tools: ToolCatalog;
  #pages = 0;
  #ttlMs = 0;
  #nextCursor: string | undefined;
  /** True if the answer to a request for a page was no page. */
  #isBroken = false;

  constructor(isKept: (tool: ListedTool) => boolean) {
    this.tools = new ToolCatalog(isKept);
  }

  /** Time for which all pages stay valid. */
  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** True if the whole list has been read. */
  get isComplete(): boolean {
    return this.#pages > 0 && this.#nextCursor === undefined && !this.#isBroken;
  }

  /** The cursor of the page to ask for. Undefined if there is no further page, or no more is read. */
  get nextCursor(): string | undefined {
    return this.#pages < MAX_PAGES && !this.#isBroken ? this.#nextCursor : undefined;
  }

  /** Takes the answer to a request for the next page. Returns undefined if it is no page; then no page follows. */
  read(answer: Frame): ToolPage | undefined {
    const page = readToolPage(answer);
    if (page === undefined) this.#isBroken = true;
    else this.add(page);
    return page;
  }

  add(page: ToolPage): void {
    this.tools.add(page.tools);
    this.#ttlMs = this.#pages === 0 ? page.ttlMs : Math.min(this.#ttlMs, page.ttlMs);
    this.#pages += 1;
    this.#nextCursor = page.nextCursor;
  }
}
