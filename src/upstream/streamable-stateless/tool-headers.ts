import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { HeaderAnnotations } from '../../mcp/classify/param-headers.ts';
import { readToolPage, type ToolPage } from '../../mcp/classify/tool-list.ts';
import { toPrintable } from '../../printable.ts';
import { ToolCatalog, ToolListing } from '../../relay/tool-catalog.ts';
import type { Frame } from '../../wire/frame.ts';

/**
 * Shortest time for which a list is trusted, whatever the server says. It prevents a request for the list at each call
 * of a tool that the list does not name, and at each call after the list could not be fetched.
 */
const MIN_TRUST_MS = 10_000;
/**
 * Requests one page of the list; an undefined cursor means the first page. Rejects with a BridgeError if there is no
 * answer.
 */
export type AskForPage = (cursor: string | undefined) => Promise<Frame>;

export interface KnownTool {
  readonly annotations: HeaderAnnotations | undefined;
  /** False if the list may be out of date and should be fetched. */
  readonly isSure: boolean;
}

/**
 * Headers that the tools of a server require, as shown to one principal. Known annotations are used whatever their age:
 * if they are out of date, the server rejects the call without acting on it, and the list is fetched again.
 * [spec 2026-07-28 transports/streamable-http#client-behavior]
 */
export class ToolHeaders {
  readonly #clock: Clock;
  readonly #log: Logger;
  #tools = new ToolCatalog(all);
  /** Until this time a tool that is unknown or invalid is taken to be so. */
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  /** Increases with each change that makes a list being fetched out of date. */
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

  /** Notes a page that is sent to the client, and returns it without hidden tools. */
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

  /** Call this when the server reports that its list has changed. */
  invalidate(): void {
    this.#generation += 1;
    this.#tools = new ToolCatalog(all);
    this.#trustedUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Fetches the whole list. Concurrent calls share one fetch. Resolves even if the list could not be fetched. */
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
    // A list that changed during the fetch is discarded; the next call fetches it again.
    if (generation === this.#generation) this.#replace(listed);
  }

  #replace(listed: ToolListing): void {
    if (listed.isComplete) this.#tools = listed.tools;
    else this.#tools.add(listed.tools);
    this.#trustedUntilMs = this.#clock.now() + Math.max(MIN_TRUST_MS, listed.ttlMs);
  }

  /** Warns once per tool, and again if a different fault is found. */
  #warn({ tools }: ToolPage): void {
    for (const { name, annotations } of tools) {
      const known = this.#tools.find(name)?.annotations;
      if (!('invalid' in annotations)) continue;
      if (known !== undefined && 'invalid' in known && known.invalid === annotations.invalid) continue;
      const shown = { tool: toPrintable(name, 100), fault: toPrintable(annotations.invalid, 200) };
      this.#log.warn(shown, 'hiding a tool: its schema names headers in a way that is not allowed');
    }
  }
}

const all = (): boolean => true;
