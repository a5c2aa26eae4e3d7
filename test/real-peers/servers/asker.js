/**
 * A legacy server on stdio that asks its client things during calls, as servers do that know no better: nothing in its
 * requests says which call they belong to.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/**
 * @typedef {import('@modelcontextprotocol/sdk/shared/protocol.js').RequestHandlerExtra<
 *   import('@modelcontextprotocol/sdk/types.js').ServerRequest,
 *   import('@modelcontextprotocol/sdk/types.js').ServerNotification
 * >} Extra
 */

/** So that calls which run in one process overlap. */
const PAUSE_MS = 5;

const server = new Server({ name: 'asker', version: '1.0.0' }, { capabilities: { tools: {} } });

/** Calls of this process so far. */
let calls = 0;

/** @type {Record<string, (marker: string) => Promise<unknown>>} */
const QUESTIONS = {
  sampling: async (marker) => {
    const messages = [
      { role: /** @type {const} */ ('user'), content: { type: /** @type {const} */ ('text'), text: marker } },
    ];
    const { content } = await server.createMessage({ maxTokens: 10, messages });
    return Array.isArray(content) || content.type !== 'text' ? content : content.text;
  },
  elicitation: async (marker) => {
    const requestedSchema = {
      type: /** @type {const} */ ('object'),
      properties: { answer: { type: /** @type {const} */ ('string') } },
    };
    const { content } = await server.elicitInput({ message: marker, requestedSchema });
    return content?.answer;
  },
  roots: async () => (await server.listRoots()).roots[0]?.name,
};

/** @type {Record<string, (args: Record<string, any>, extra: Extra) => unknown>} */
const TOOLS = {
  /** Asks this one thing after the other, and tells what it was answered. */
  ask: async ({ marker, kinds }) => {
    const answers = [];
    for (const kind of kinds) {
      await delay(PAUSE_MS);
      answers.push(await QUESTIONS[kind]?.(marker));
    }
    return answers;
  },
  /** What the process remembers. */
  state: () => ({ pid: process.pid, calls, client: server.getClientVersion() }),
  /** Says that it has begun, and asks when nobody wants it anymore: again and again. */
  late: async ({ marker }, { signal, sendNotification, _meta }) => {
    const progressToken = _meta?.progressToken ?? 0;
    await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    for (let n = 0; n < 50; n += 1) {
      await delay(PAUSE_MS);
      QUESTIONS.sampling?.(marker).catch(() => {});
    }
  },
};

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
  calls += 1;
  const said = await TOOLS[params.name]?.(params.arguments ?? {}, extra);
  return { content: [{ type: 'text', text: JSON.stringify(said) }] };
});

void server.connect(new StdioServerTransport());
