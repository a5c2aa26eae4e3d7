import type { Logger } from 'pino';
import { RecentNames } from '../../collections/recent-names.ts';
import type { Clock } from '../../deps.ts';
import { type HeaderAnnotations, lengthOf } from '../../mcp/classify/param-headers.ts';
import { type ListedTool, readToolList, type ToolList } from '../../mcp/classify/tool-list.ts';
import { readFields } from '../../mcp/vocabulary/payload.ts';
import { toPrintable } from '../../printable.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { COMMA } from '../../wire/json/ascii.ts';

/**
 * A list counts as news for so long, whatever the server says: it is not asked for at each call of a tool that it does
 * not name, nor at each call after it could not be had.
 */
const MIN_TRUST_MS = 10_000;
/** Pages fetched at a time; a server with more leaves some tools unknown. */
const MAX_PAGES = 50;
/** Tools remembered for one principal, and characters of them; later ones push out the first. */
export const TOOL_LIMITS = { count: 4096, length: 256 * 1024 };

/** Asks for one page of the list; undefined: the first. Rejects with a BridgeError when there is no answer. */
export type AskForPage = (cursor: string | undefined) => Promise<Frame>;

/** Pages of the list, as far as they have come. Of the pages themselves nothing is kept: each may be large. */
interface Listed {
  readonly tools: RecentNames<HeaderAnnotations>;
  pages: number;
  /** How long all of them stay good. */
  ttlMs: number;
  nextCursor: string | undefined;
}

export interface KnownTool {
  readonly annotations: HeaderAnnotations | undefined;
  /** False: the list may be too old to go by, and should be asked for. */
  readonly isSure: boolean;
}

/**
 * Which headers the tools of a server want, as one principal is shown them. Annotations that are known are used however
 * old they are: where they are not right any more, the server refuses the call without acting on it, and they are asked
 * for anew. [spec 2026-07-28 transports/streamable-http#client-behavior]
 */
export class ToolHeaders {
  readonly #clock: Clock;
  readonly #log: Logger;
  #tools = new RecentNames<HeaderAnnotations>(TOOL_LIMITS);
  /** Until then a tool that is not known, or not valid, is taken to be so. */
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  /** Counts what makes a list that is under way outdated. */
  #generation = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  find(name: string): KnownTool {
    const annotations = this.#tools.get(name);
    const isUsable = annotations !== undefined && !('invalid' in annotations);
    return { annotations, isSure: isUsable || this.#clock.now() < this.#trustedUntilMs };
  }

  /** Notes a page on its way to the client, and returns it without the tools that must not be shown. */
  pass(isFirst: boolean, answer: Frame): Frame {
    const page = readToolPage(answer);
    if (page === undefined) return answer;
    if (isFirst && page.nextCursor === undefined) {
      const listed = nothingListed();
      this.#read(page, listed);
      this.#replace(listed);
    } else {
      this.#warn(page);
      add(page, this.#tools);
    }
    return page.shown;
  }

  /** The server says that its list has changed. */
  invalidate(): void {
    this.#generation += 1;
    this.#tools = new RecentNames(TOOL_LIMITS);
    this.#trustedUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Asks for the whole list; several at once ask once. Resolves also when it cannot be had. */
  refresh(ask: AskForPage): Promise<void> {
    this.#refreshing ??= this.#fetch(ask).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #fetch(ask: AskForPage): Promise<void> {
    const generation = this.#generation;
    const listed = nothingListed();
    try {
      do {
        const page = readToolPage(await ask(listed.nextCursor));
        if (page === undefined) break;
        this.#read(page, listed);
      } while (listed.nextCursor !== undefined && listed.pages < MAX_PAGES);
    } catch (error) {
      this.#log.debug({ err: error }, 'the list of tools could not be had; calls go without headers for arguments');
    }
    // What has changed meanwhile is asked for again by the next call.
    if (generation === this.#generation) this.#replace(listed);
  }

  #read(page: ToolPage, listed: Listed): void {
    this.#warn(page);
    add(page, listed.tools);
    listed.ttlMs = listed.pages === 0 ? page.ttlMs : Math.min(listed.ttlMs, page.ttlMs);
    listed.pages += 1;
    listed.nextCursor = page.nextCursor;
  }

  #replace({ tools, pages, ttlMs, nextCursor }: Listed): void {
    if (pages > 0 && nextCursor === undefined) this.#tools = tools;
    else for (const [name, annotations] of tools) this.#tools.set(name, annotations, lengthOf(annotations));
    this.#trustedUntilMs = this.#clock.now() + Math.max(MIN_TRUST_MS, ttlMs);
  }

  /** Once for each tool, and again when something else is wrong with it. */
  #warn({ tools }: ToolPage): void {
    for (const { name, annotations } of tools) {
      const known = this.#tools.get(name);
      if (!('invalid' in annotations)) continue;
      if (known !== undefined && 'invalid' in known && known.invalid === annotations.invalid) continue;
      const shown = { tool: toPrintable(name, 100), fault: toPrintable(annotations.invalid, 200) };
      this.#log.warn(shown, 'a tool is hidden: its schema names headers in a way that is not allowed');
    }
  }
}

function nothingListed(): Listed {
  return { tools: new RecentNames(TOOL_LIMITS), pages: 0, ttlMs: 0, nextCursor: undefined };
}

function add({ tools }: ToolPage, known: RecentNames<HeaderAnnotations>): void {
  for (const { name, annotations } of tools) known.set(name, annotations, lengthOf(annotations));
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
