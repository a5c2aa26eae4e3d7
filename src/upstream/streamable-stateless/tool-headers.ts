import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { HeaderAnnotations } from '../../mcp/classify/param-headers.ts';
import { readToolPage, type ToolPage } from '../../mcp/classify/tool-list.ts';
import { toPrintable } from '../../printable.ts';
import { ToolCatalogue, ToolListing } from '../../relay/tool-catalogue.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * A list counts as news for so long, whatever the server says: it is not asked for at each call of a tool that it does
 * not name, nor at each call after it could not be had.
 */
const MIN_TRUST_MS = 10_000;
/** Asks for one page of the list; undefined: the first. Rejects with a BridgeError when there is no answer. */
export type AskForPage = (cursor: string | undefined) => Promise<Frame>;

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
  #tools = new ToolCatalogue(all);
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
    const annotations = this.#tools.find(name)?.annotations;
    const isUsable = annotations !== undefined && !('invalid' in annotations);
    return { annotations, isSure: isUsable || this.#clock.now() < this.#trustedUntilMs };
  }

  /** Notes a page on its way to the client, and returns it without the tools that must not be shown. */
  pass(isFirst: boolean, answer: Frame): Frame {
    const page = readToolPage(answer);
    if (page === undefined) return answer;
    if (isFirst && page.nextCursor === undefined) {
      const listed = new ToolListing(all);
      this.#warn(page);
      listed.add(page);
      this.#replace(listed);
    } else {
      this.#warn(page);
      this.#tools.add(page.tools);
    }
    return page.shown;
  }

  /** The server says that its list has changed. */
  invalidate(): void {
    this.#generation += 1;
    this.#tools = new ToolCatalogue(all);
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
    const listed = new ToolListing(all);
    try {
      do {
        const page = listed.read(await ask(listed.nextCursor));
        if (page !== undefined) this.#warn(page);
      } while (listed.nextCursor !== undefined);
    } catch (error) {
      this.#log.debug({ err: error }, 'the list of tools could not be had; calls go without headers for arguments');
    }
    // What has changed meanwhile is asked for again by the next call.
    if (generation === this.#generation) this.#replace(listed);
  }

  #replace(listed: ToolListing): void {
    if (listed.isComplete) this.#tools = listed.tools;
    else this.#tools.add(listed.tools);
    this.#trustedUntilMs = this.#clock.now() + Math.max(MIN_TRUST_MS, listed.ttlMs);
  }

  /** Once for each tool, and again when something else is wrong with it. */
  #warn({ tools }: ToolPage): void {
    for (const { name, annotations } of tools) {
      const known = this.#tools.find(name)?.annotations;
      if (!('invalid' in annotations)) continue;
      if (known !== undefined && 'invalid' in known && known.invalid === annotations.invalid) continue;
      const shown = { tool: toPrintable(name, 100), fault: toPrintable(annotations.invalid, 200) };
      this.#log.warn(shown, 'a tool is hidden: its schema names headers in a way that is not allowed');
    }
  }
}

const all = (): boolean => true;
