import type { Answers, ScenarioClient } from './route.ts';

export interface Scenario {
  readonly answers?: Answers;
  run(client: ScenarioClient): Promise<unknown>;
}

/** Calls that the suite asks for, beside the name of the scenario. */
interface Context {
  /** What the authorization server knows beforehand. */
  readonly client_id?: string;
  readonly client_secret?: string;
  /** PEM */
  readonly private_key_pem?: string;
  /** The assertion of a workload. */
  readonly valid_jwt?: string;
  /** Where users of a company log in, as which client, and what one who has done so has got. */
  readonly idp_issuer?: string;
  readonly idp_client_id?: string;
  readonly idp_id_token?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: Record<string, unknown> }[];
}

export const CONTEXT: Context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

/** Something the server wants a token for, and something that may take more. */
const PROTECTED: Scenario = {
  async run(client) {
    await client.listTools();
    await client.callTool('test-tool');
  },
};

/** All about authorization are alike: what differs is the way to the token. */
export function findScenario(name: string): Scenario | undefined {
  return name.startsWith('auth/') ? PROTECTED : SCENARIOS[name];
}

/** What the client does in each scenario of the suite, of either era. */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  initialize: { run: (client) => client.listTools() },

  'request-metadata': { run: (client) => client.listTools() },

  tools_call: {
    async run(client) {
      await client.listTools();
      await client.callTool('add_numbers', { a: 2, b: 3 });
    },
  },

  'elicitation-sep1034-client-defaults': {
    answers: { elicitation: {} },
    run: (client) => client.callTool('test_client_elicitation_defaults'),
  },

  'sse-retry': { run: (client) => client.callTool('test_reconnection') },

  'json-schema-ref-no-deref': { run: (client) => client.listTools() },

  'json-schema-2020-12-preservation': {
    async run(client) {
      const tools = await client.listTools();
      const focal = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
      await client.callTool('json_schema_echo', { schema: focal?.inputSchema });
    },
  },

  'sep-2322-client-request-state': {
    answers: { elicitation: { confirmed: true } },
    async run(client) {
      await client.listTools();
      await Promise.all([client.callTool('test_mrtr_echo_state'), client.callTool('test_mrtr_unrelated')]);
      await client.callTool('test_mrtr_no_state');
      await client.callTool('test_mrtr_no_result_type');
    },
  },

  'http-standard-headers': {
    async run(client) {
      for (const { name } of await client.listTools()) await client.callTool(name);
      for (const { uri } of await client.listResources()) await client.readResource(uri);
      for (const { name } of await client.listPrompts()) await client.getPrompt(name);
    },
  },

  'http-custom-headers': {
    async run(client) {
      await client.listTools();
      for (const { name, arguments: args } of CONTEXT.toolCalls ?? []) await client.callTool(name, args);
    },
  },

  'http-invalid-tool-headers': {
    async run(client) {
      for (const { name } of await client.listTools()) await client.callTool(name, { region: 'us-west1' });
    },
  },
};
