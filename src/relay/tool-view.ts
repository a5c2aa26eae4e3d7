import type { Logger } from 'pino';
import { readToolName } from '../mcp/classify/ambiguity.ts';
import { asPrivate, type ShapeTool, shapeTools, type ToolTexts, withToolName } from '../mcp/translate/shape-tools.ts';
import { CALL_TOOL } from '../mcp/vocabulary/methods.ts';
import { encodeJson, readField } from '../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR, INVALID_PARAMS } from '../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../wire/frame.ts';
import { errorFrame } from '../wire/write-message.ts';

/** Texts that clients see in place of the server's. A text that is undefined stays as the server wrote it. */
export interface ToolShape {
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly description: string | undefined;
}

/** In all options, tools have the names that the server gives them. */
export interface ToolViewOptions {
  /** Returns true for a tool that clients neither see nor call. */
  readonly isHidden: (name: string) => boolean;
  /** Changed texts of tools. No two tools that are not hidden have the same name for clients. */
  readonly shapes: ReadonlyMap<string, ToolShape>;
  /**
   * Returns true if a caller sees the tool and may call it. Undefined if all callers see the same tools. The principal is
   * undefined for a client at the other end of a pipe.
   */
  readonly isForCaller: ((name: string, principal: string | undefined) => boolean) | undefined;
  readonly log: Pick<Logger, 'warn'>;
}

/** A tool that clients know by another name. */
interface RenamedTool {
  /** The name that the server gives it. */
  readonly own: string;
  /** That name as JSON. */
  readonly token: Buffer;
}

/**
 * The tools of a server as its clients see them: some are hidden, others have other names and descriptions. The view is
 * applied where calls of clients begin and end, so clients of either era see the same. All other parts of the bridge
 * know the tools as the server describes them, except observers of calls, which get the names that clients use.
 *
 * A name always leads to the same tool, whatever was listed before and by which process, because clients may keep a list
 * for long. So a renamed tool has its new name for certain: if the server has a tool of that name itself, that tool is not
 * shown, unless it is renamed as well. A renamed tool is unknown by the name that the server gives it.
 */
export class ToolView {
  readonly #options: ToolViewOptions;
  /** The tools that have another name for clients, by that name. */
  readonly #renamed = new Map<string, RenamedTool>();
  readonly #texts = new Map<string, ToolTexts>();
  /** Names of the server's tools that are not shown because another tool has their name, as far as they were logged. */
  readonly #displaced = new Set<string>();
  /** Tools with settings that no list has had so far. Empty once their absence was logged. */
  readonly #unlisted: Set<string>;

  constructor(options: ToolViewOptions) {
    this.#options = options;
    this.#unlisted = new Set(options.shapes.keys());
    for (const [own, { name, title, description }] of options.shapes) {
      if (options.isHidden(own)) continue;
      const isRenamed = name !== undefined && name !== own;
      if (isRenamed) this.#renamed.set(name, { own, token: encodeJson(own) });
      if (!isRenamed && title === undefined && description === undefined) continue;
      this.#texts.set(own, {
        name: isRenamed ? encodeJson(name) : undefined,
        title: title === undefined ? undefined : encodeJson(title),
        description: description === undefined ? undefined : encodeJson(description),
      });
    }
  }

  /**
   * Returns a message of a client as it goes to the server, or why it may not. A tool that the client does not see is
   * refused like one that does not exist. [spec 2025-11-25 server/tools#error-handling]
   */
  toServer(message: Frame, principal: string | undefined): Frame | RpcError {
    if (message.method !== CALL_TOOL) return message;
    const name = readToolName(message);
    if (name === undefined) return UNCLEAR_TOOL_NAME;
    const renamed = this.#renamed.get(name);
    const own = renamed === undefined ? name : renamed.own;
    const isUnknown = renamed === undefined && this.#texts.get(own)?.name !== undefined;
    if (isUnknown || !this.#isShown(own, principal)) {
      return { code: INVALID_PARAMS, message: `Unknown tool: ${name.slice(0, 200)}` };
    }
    return renamed === undefined ? message : withToolName(message, renamed.token);
  }

  /** Returns a message as its client sent it, from the message that went to the server. */
  asSent(message: Frame): Frame {
    const own = message.method === CALL_TOOL ? readToolName(message) : undefined;
    const name = own === undefined ? undefined : this.#texts.get(own)?.name;
    return name === undefined ? message : withToolName(message, name);
  }

  #isShown(own: string, principal: string | undefined): boolean {
    const { isHidden, isForCaller } = this.#options;
    return !isHidden(own) && isForCaller?.(own, principal) !== false;
  }

  /** Returns the answer to `tools/list` as the client gets it. */
  toClient(list: Frame, principal: string | undefined): Frame {
    if (list.kind !== 'result') return list;
    const shapeTool: ShapeTool = (own) => {
      this.#unlisted.delete(own);
      if (!this.#isShown(own, principal) || this.#isDisplaced(own)) return 'hidden';
      return this.#texts.get(own) ?? 'as-is';
    };
    const shown = shapeTools(list, shapeTool);
    if (shown === undefined) return errorFrame(idToken(list), UNREADABLE_LIST);
    if (this.#unlisted.size > 0 && readField(list, 'nextCursor') === undefined) this.#warnOfUnlisted();
    return this.#options.isForCaller === undefined ? shown : asPrivate(shown);
  }

  /** Called after the last page of a list. A misspelled name would otherwise hide or restrict nothing unnoticed. */
  #warnOfUnlisted(): void {
    const names = [...this.#unlisted].map((name) => JSON.stringify(name));
    this.#unlisted.clear();
    const more = names.length > MAX_NAMES_LOGGED ? ` and ${names.length - MAX_NAMES_LOGGED} more` : '';
    this.#options.log.warn(
      `the server has not listed these tools, for which there are settings: ${names.slice(0, MAX_NAMES_LOGGED).join(', ')}${more}; check their names, which are those that the server uses`,
    );
  }

  /** Returns true if clients know another tool by this name, and this tool has no other name. */
  #isDisplaced(own: string): boolean {
    const renamed = this.#renamed.get(own);
    if (renamed === undefined || this.#texts.get(own)?.name !== undefined) return false;
    if (!this.#displaced.has(own)) {
      this.#displaced.add(own);
      this.#options.log.warn(
        { tool: own },
        `clients do not see the server's tool ${JSON.stringify(own)}, because its tool ${JSON.stringify(renamed.own)} is shown by that name; choose another name for one of them`,
      );
    }
    return true;
  }
}

const MAX_NAMES_LOGGED = 10;

/** Answer to a call whose tool the bridge and the server might read differently. */
export const UNCLEAR_TOOL_NAME: RpcError = {
  code: INVALID_PARAMS,
  message: 'The name of the tool can be read in several ways, or is no string; send one member called name.',
};

/** Answer in place of a list in which hidden tools cannot be found. Such a list is not shown at all. */
const UNREADABLE_LIST: RpcError = {
  code: INTERNAL_ERROR,
  message: 'The server sent a list of tools that cannot be filtered: it is malformed, or longer than 20000 tools.',
};
