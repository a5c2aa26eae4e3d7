import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Answers, Route, ScenarioClient } from './route.ts';

const REVISION = '2026-07-28';

export async function connectModern(route: Route, { elicitation }: Answers): Promise<ScenarioClient> {
  const capabilities = elicitation === undefined ? {} : { elicitation: { form: { applyDefaults: true } } };
  const client = new Client(
    { name: 'conformance', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: REVISION } } },
  );
  if (elicitation !== undefined) {
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { ...elicitation } }));
  }
  await client.connect(openTransport(route));
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

function openTransport(route: Route) {
  if (route.kind === 'http') return new StreamableHTTPClientTransport(route.url);
  return new StdioClientTransport({
    command: route.command,
    args: [...route.args],
    env: { ...getDefaultEnvironment(), ...route.env },
  });
}
