/**
 * The client the conformance suite is shown: `client.ts direct <url>` speaks Streamable HTTP with the SDK's transport,
 * `client.ts bridged <url>` speaks to `mcp-portage connect <url>` over stdio with the SDK's transport for that. What it
 * does is the same; the two scores are compared. The suite names the scenario in MCP_CONFORMANCE_SCENARIO.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type ClientCapabilities, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { BRIDGE_COMMAND } from '../support/bridge.ts';

interface Scenario {
  readonly capabilities?: ClientCapabilities;
  /** Called before the connection is made. */
  prepare?(client: Client): void;
  run(client: Client): Promise<unknown>;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  initialize: { run: (client) => client.listTools() },

  tools_call: {
    async run(client) {
      await client.listTools();
      await client.callTool({ name: 'add_numbers', arguments: { a: 2, b: 3 } });
    },
  },

  'elicitation-sep1034-client-defaults': {
    // The SDK fills in what the answer leaves out.
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    prepare(client) {
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
    },
    run: (client) => client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} }),
  },

  'sse-retry': { run: (client) => client.callTool({ name: 'test_reconnection', arguments: {} }) },

  'json-schema-2020-12-preservation': {
    async run(client) {
      const { tools } = await client.listTools();
      const focal = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
      await client.callTool({ name: 'json_schema_echo', arguments: { schema: focal?.inputSchema } });
    },
  },
};

const [mode, url = ''] = process.argv.slice(2);
const name = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const scenario = SCENARIOS[name];
if (scenario === undefined) throw new Error(`this client does not know the scenario "${name}"`);

const client = new Client({ name: 'conformance', version: '1.0.0' }, { capabilities: scenario.capabilities ?? {} });
scenario.prepare?.(client);
// The SDK's own transports do not satisfy its interface under exactOptionalPropertyTypes.
await client.connect(openTransport() as Transport);
try {
  await scenario.run(client);
} finally {
  await client.close();
}

function openTransport(): object {
  if (mode === 'direct') return new StreamableHTTPClientTransport(new URL(url));
  const [command, ...args] = BRIDGE_COMMAND;
  return new StdioClientTransport({ command, args: [...args, 'connect', url] });
}
