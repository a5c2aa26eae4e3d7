/** The JSON Schema of configuration files, for editors. The program itself checks more, and says it better. */
import { toJSONSchema } from 'zod';
import { ENTRY_SCHEMA, type ENTRY_SHAPE } from '../src/cli/config-file/entry-schema.ts';
import { loginKeyOf } from '../src/cli/config-file/portage-key.ts';
import { OPTIONS, type Option, type OptionScope } from '../src/cli/options/option-table.ts';
import { TOOL_NAME } from '../src/cli/parse/servers/tool-value.ts';

type Schema = Readonly<Record<string, unknown>>;

const DESCRIPTIONS: Readonly<Record<keyof typeof ENTRY_SHAPE, string>> = {
  type: 'stdio or local for a command; http, streamable-http, sse, mqtt or remote for a URL',
  transport: 'Another name of type',
  transportType: 'Another name of type',
  command: 'The program to start; as a list, with its arguments',
  cmd: 'Another name of command (goose)',
  args: 'Arguments of the program',
  env: 'Variables for the program; null removes one of the envFile',
  environment: 'Another name of env (opencode)',
  envs: 'Another name of env (goose)',
  env_vars: 'Names of variables that the program gets from here (Codex)',
  env_keys: 'Another name of env_vars (goose)',
  envFile: 'A file with variables for the program',
  cwd: 'Working directory of the program; the folder of the workspace unless given',
  url: 'Where the server is: https, http, unix:///run/mcp.sock#/mcp for one at a Unix socket, or mqtt://host/name for one at a broker',
  serverUrl: 'Another name of url (Windsurf)',
  httpUrl: 'Where the server speaks Streamable HTTP (Gemini CLI)',
  uri: 'Another name of url (goose)',
  baseUrl: 'Another name of url (Cherry Studio)',
  socket: 'The Unix socket at which the url is asked for; /mcp where there is no url',
  username: 'User name for the broker of the server (MQTT)',
  password: 'Password for the broker, best as the name of a variable (MQTT)',
  headers: 'Sent with every request to the server',
  http_headers: 'Another name of headers (Codex)',
  requestOptions: 'An object whose headers are sent (Continue)',
  env_http_headers: 'Names of headers and of the variables with their values (Codex)',
  bearer_token_env_var: 'Name of the variable with the token that is sent as a credential (Codex)',
  disabled: 'Leaves the server out',
  enabled: 'false leaves the server out',
  active: 'false leaves the server out (Jan)',
  isActive: 'false leaves the server out (Cherry Studio)',
  required: 'Whether the process is ready only when this server is (Codex)',
  timeout: 'Silence allowed to one call, in milliseconds; less than 1000 is read as seconds',
  tool_timeout_sec: 'Silence allowed to one call, in seconds (Codex)',
  includeTools: 'Names or patterns of the only tools that clients see',
  enabled_tools: 'Another name of includeTools (Codex)',
  available_tools: 'Another name of includeTools, but for an empty list (goose)',
  excludeTools: 'Names or patterns of tools that no client sees',
  disabled_tools: 'Another name of excludeTools (Codex)',
  disabledTools: 'Another name of excludeTools (Windsurf, Roo Code)',
  tools:
    'A list: another name of includeTools (Copilot); an object with include or exclude (Hermes), or with tools that are switched off (Codex)',
  protocolEra: 'Era of the protocol the server speaks: auto, legacy or modern (Inspector)',
};

const OWN: Schema = {
  required: { type: 'boolean', description: 'Whether the process is ready only when this server is' },
  callers: {
    ...listOfTexts(),
    description: 'Names of the only callers that may use this server; for others it does not exist',
  },
  aggregate: { type: 'boolean', description: 'false leaves this server out of the aggregate', default: true },
  prefix: {
    type: 'string',
    pattern: '^[A-Za-z0-9_-]{0,40}$',
    description: "What precedes the names of this server's tools and prompts in the aggregate; empty for nothing",
  },
  alwaysShow: {
    ...listOfTexts(),
    description: 'Tools of this server that are listed although clients search for the others',
  },
  tools: {
    type: 'object',
    description: 'How clients see single tools, by the names that the server gives them',
    additionalProperties: {
      type: 'object',
      properties: {
        name: { type: 'string', pattern: TOOL_NAME.source, description: 'Name that clients see' },
        title: { type: 'string', description: 'Title that clients see' },
        description: { type: 'string', description: 'Description that clients see' },
        hidden: { type: 'boolean', description: 'Whether clients neither see nor call the tool' },
        callers: {
          ...listOfTexts(),
          description: 'Names of the only callers that may use this tool; for others it does not exist',
        },
      },
      additionalProperties: false,
    },
  },
};

export function renderConfigSchema(): string {
  const ref = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
  const servers = { type: 'object', additionalProperties: ref('server') };
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://unpkg.com/mcp-portage/docs/reference/config.schema.json',
    title: 'Servers for mcp-portage serve --config',
    type: 'object',
    properties: {
      mcpServers: { ...servers, description: 'Servers, as in Claude, Cursor, Windsurf, Gemini CLI, Cline' },
      servers: { ...servers, description: 'Servers, as in mcp.json of VS Code' },
      inputs: {
        type: 'array',
        items: ref('input'),
        description: 'What VS Code asks for; here variables of the environment',
      },
      context_servers: { ...servers, description: 'Servers, as in settings.json of Zed' },
      'amp.mcpServers': { ...servers, description: 'Servers, as in settings.json of Amp' },
      mcp_servers: { ...servers, description: 'Servers, as in config.toml of Codex' },
      mcp: {
        type: 'object',
        description: 'Servers, as in opencode, or below servers as in the settings of VS Code',
        properties: { servers, inputs: { type: 'array', items: ref('input') } },
      },
      portage: ref('portage'),
    },
    $defs: {
      server: describeServer(ref('portageOfServer')),
      input: {
        type: 'object',
        properties: { id: { type: 'string' }, default: { type: 'string' } },
        required: ['id'],
      },
      portageOfServer: {
        type: 'object',
        description: 'What mcp-portage does with this server, named like its options',
        properties: { ...OWN, ...describeOptions(['one-server', 'server']) },
      },
      portage: {
        type: 'object',
        description: 'What mcp-portage does, and defaults for every server, named like its options',
        properties: describeOptions(['process', 'server']),
      },
    },
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function describeServer(portage: Schema): Schema {
  const { $schema, properties = {}, ...server } = toJSONSchema(ENTRY_SCHEMA) as Schema & { properties?: object };
  const described = Object.entries(properties).map(([key, value]: [string, object]) => [
    key,
    { ...value, description: DESCRIPTIONS[key as keyof typeof DESCRIPTIONS] },
  ]);
  return { ...server, properties: { ...Object.fromEntries(described), portage } };
}

function describeOptions(scopes: readonly OptionScope[]): Schema {
  const options = OPTIONS.filter((option) => scopes.includes(option.scope));
  const ofLogin = options.map((option) => [loginKeyOf(option), describeOption(option)]);
  const login = { type: 'object', properties: Object.fromEntries(ofLogin.filter(([key]) => key !== undefined)) };
  return Object.fromEntries(
    options.map((option) => [
      option.name,
      option.name === 'login' ? orInDetail(describeOption(option), login) : describeOption(option),
    ]),
  );
}

/** An object stands for `on-demand`, and says how. */
function orInDetail({ description, ...word }: Schema, object: Schema): Schema {
  return { description, anyOf: [word, object] };
}

function describeOption({ kind, describe, type, default: standard }: Option): Schema {
  const rest = { description: describe, ...(standard === undefined ? {} : { default: standard }) };
  if (kind === 'flag') return { type: 'boolean', ...rest, default: standard === 'true' };
  const map = type.readMember !== undefined ? [{ type: 'object', additionalProperties: { type: 'string' } }] : [];
  if (kind === 'list') return { anyOf: [{ type: 'string' }, listOfTexts(), ...map], ...rest };
  return type.choices === undefined
    ? { type: ['string', 'number'], ...rest }
    : { enum: type.choices.map(toJson), ...rest };
}

/** In a file, a choice that reads `true` or `false` is no string. */
function toJson(choice: string): string | boolean {
  return choice === 'true' || choice === 'false' ? choice === 'true' : choice;
}

function listOfTexts(): Schema {
  return { type: 'array', items: { type: 'string' } };
}
