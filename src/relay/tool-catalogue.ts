import { RecentNames } from '../collections/bounded-collections.ts';
import { lengthOf } from '../mcp/classify/param-headers.ts';
import { type ListedTool, readToolPage, type ToolPage } from '../mcp/classify/tool-list.ts';
import type { Frame } from '../wire/frame.ts';

/** Tools remembered, and characters of what is known of them; later ones push out the first. */
export const TOOL_LIMITS = { count: 4096, length: 256 * 1024 };
/** Pages read of one list; of a server with more some tools stay unknown. */
export const MAX_PAGES = 50;

/**
 * What a server says of its tools, as far as the bridge goes by it. Whoever owns a catalogue decides for whom it is,
 * which tools are worth remembering, and how long it trusts it.
 */
export class ToolCatalogue {
  readonly #isKept: (tool: ListedTool) => boolean;
  readonly #tools = new RecentNames<ListedTool>(TOOL_LIMITS);

  /** @param isKept of other tools is known no more than of one that was never listed */
  constructor(isKept: (tool: ListedTool) => boolean) {
    this.#isKept = isKept;
  }

  get size(): number {
    return this.#tools.size;
  }

  find(name: string): ListedTool | undefined {
    return this.#tools.get(name);
  }

  /** What was known of a tool is replaced. */
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

/** A list that comes page by page. Of the pages themselves nothing is kept: each may be large. */
export class ToolListing {
  readonly tools: ToolCatalogue;
  #pages = 0;
  #ttlMs = 0;
  #nextCursor: string | undefined;
  /** A page did not come. */
  #isBroken = false;

  constructor(isKept: (tool: ListedTool) => boolean) {
    this.tools = new ToolCatalogue(isKept);
  }

  /** How long all pages stay good. */
  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** All of the list has come. */
  get isComplete(): boolean {
    return this.#pages > 0 && this.#nextCursor === undefined && !this.#isBroken;
  }

  /** The cursor of the page to ask for; undefined: no page follows, or no more is read. */
  get nextCursor(): string | undefined {
    return this.#pages < MAX_PAGES && !this.#isBroken ? this.#nextCursor : undefined;
  }

  /** Takes the answer to a request for the next page. Undefined: it is no page, and none follows. */
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
