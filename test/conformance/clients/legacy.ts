import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Answers, Route, ScenarioClient } from './route.ts';

export async function connectLegacy(route: Route, { elicitation }: Answers): Promise<ScenarioClient> {
  const capabilities = elicitation === undefined ? {} : { elicitation: { form: { applyDefaults: true } } };
  const client = new Client({ name: 'conformance', version: '1.0.0' }, { capabilities });
  if (elicitation !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { ...elicitation } }));
  }
  // The SDK's own transports do not satisfy its interface under exactOptionalPropertyTypes.
  await client.connect(openTransport(route) as Transport);
  return {
    listTools: async () => (await client.listTools()).tools,
    callTool: (name, args = {}) => client.callTool({ name, arguments: args }),
    listResources: async () => (await client.listResources()).resources,
    readResource: (uri) => client.readResource({ uri }),
    listPrompts: async () => (await client.listPrompts()).prompts,
    getPrompt: (name) => client.getPrompt({ name }),
    close: () => client.close(),
  };
}

function openTransport(route: Route): object {
  if (route.kind === 'http') return new StreamableHTTPClientTransport(route.url);
  return new StdioClientTransport({
    command: route.command,
    args: [...route.args],
    env: { ...getDefaultEnvironment(), ...route.env },
  });
}
