import { contentsOf, PROMPTS, pageOf, promptMessages, RESOURCES } from './content.js';
import { TOOLS } from './tools.js';

export const INVALID_PARAMS = -32602;
export const METHOD_NOT_FOUND = -32601;

/** @param {number} code @param {string} message @param {object} [data] */
export const rpcError = (code, message, data) => Object.assign(new Error(message), { code, data });

const ITEMS = {
  tools: Object.entries(TOOLS).map(([name, { definition }]) => ({
    name,
    description: `The tool ${name}`,
    inputSchema: { type: 'object' },
    ...definition,
  })),
  resources: RESOURCES,
  prompts: PROMPTS,
};

/** @type {Record<string, (name: string) => object>} */
const GROWN = {
  tools: (name) => ({ name, inputSchema: { type: 'object' } }),
  resources: (name) => ({ name, uri: `test://grown/${name}` }),
  prompts: (name) => ({ name }),
};

/** What there is to list and to read, in either era; it may grow. */
export class Catalog {
  /** @type {Record<string, readonly object[]>} */
  #items = { ...ITEMS };

  /** @param {string} list @param {string} name */
  grow(list, name) {
    this.#items[list] = [...(this.#items[list] ?? []), GROWN[list]?.(name) ?? {}];
  }

  /** A page as the protocol has it. @param {string} list @param {string | undefined} cursor */
  page(list, cursor) {
    const found = pageOf(this.#items[list] ?? [], cursor);
    if (found === undefined) throw rpcError(INVALID_PARAMS, 'not a cursor of this server', { cursor });
    const { page, nextCursor } = found;
    return { [list]: page, ...(nextCursor !== undefined && { nextCursor }) };
  }

  /** @param {string} name @param {Record<string, string> | undefined} args */
  prompt(name, args = {}) {
    if (!PROMPTS.some((prompt) => prompt.name === name)) throw rpcError(INVALID_PARAMS, `no prompt ${name}`);
    return { messages: promptMessages(name, args) };
  }

  /** @param {string} uri @param {number} missingCode what the era says when there is no such resource */
  read(uri, missingCode) {
    const contents = contentsOf(uri);
    if (contents === undefined) throw rpcError(missingCode, 'no such resource', { uri });
    return { contents: [contents] };
  }

  /** @param {string} name @returns {import('./tools.js').Tool} */
  tool(name) {
    const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
    if (tool === undefined) throw rpcError(INVALID_PARAMS, `no tool ${name}`);
    return tool;
  }
}
