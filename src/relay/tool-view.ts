import { readToolName } from '../mcp/classify/ambiguity.ts';
import { withoutTools } from '../mcp/classify/tool-list.ts';
import { CALL_TOOL } from '../mcp/vocabulary/methods.ts';
import { INTERNAL_ERROR, INVALID_PARAMS } from '../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../wire/frame.ts';
import { errorFrame } from '../wire/write-message.ts';

/** Returns true for a tool that clients neither see nor call. The name is the server's own. */
export type IsHidden = (name: string) => boolean;

/**
 * The tools of a server as its clients see them. The view is applied where calls of clients begin and end, so clients of
 * either era see the same, while the bridge's own knowledge of the tools stays complete.
 */
export class ToolView {
  readonly #isHidden: IsHidden;

  constructor(isHidden: IsHidden) {
    this.#isHidden = isHidden;
  }

  /**
   * Returns a message of a client as it goes to the server, or why it may not. A hidden tool is refused like one that
   * does not exist. [spec 2025-11-25 server/tools#error-handling]
   */
  toServer(message: Frame): Frame | RpcError {
    if (message.method !== CALL_TOOL) return message;
    const name = readToolName(message);
    if (name === undefined) return UNCLEAR_NAME;
    return this.#isHidden(name) ? { code: INVALID_PARAMS, message: `Unknown tool: ${name.slice(0, 200)}` } : message;
  }

  /** Returns the answer to `tools/list` as the client gets it. */
  toClient(list: Frame): Frame {
    if (list.kind !== 'result') return list;
    return withoutTools(list, this.#isHidden) ?? errorFrame(idToken(list), UNREADABLE_LIST);
  }
}

const UNCLEAR_NAME: RpcError = {
  code: INVALID_PARAMS,
  message: 'The name of the tool can be read in several ways, or is no string; send one member called name.',
};

/** Answer in place of a list in which hidden tools cannot be found. Such a list is not shown at all. */
const UNREADABLE_LIST: RpcError = {
  code: INTERNAL_ERROR,
  message: 'The server sent a list of tools that cannot be filtered: it is malformed, or longer than 20000 tools.',
};
