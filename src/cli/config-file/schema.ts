/** What the entries of all these hosts look like. What a key is called differs; what it means hardly does. */
import { z } from 'zod';
import { schemaOf } from './portage-key.ts';

const text = z.string({ error: 'a text' });
const texts = z.array(text, { error: 'a list of texts' });
const flag = z.boolean({ error: 'true or false' });
const seconds = z.number({ error: 'a number of seconds' }).positive({ error: 'a number of seconds above 0' });
const scalar = z.union([text, z.number(), z.boolean()], { error: 'a text, a number or a boolean' });
const ms = z.number({ error: 'a number of milliseconds' }).positive({ error: 'a number of milliseconds above 0' });
const byName = <Value extends z.ZodType>(value: Value) => z.record(z.string(), value, { error: 'an object' });

/** How the hosts call the transports; none of them is a word for "find out". */
export const TYPES = {
  stdio: 'command',
  local: 'command',
  http: 'streamable-http',
  'streamable-http': 'streamable-http',
  streamableHttp: 'streamable-http',
  streamable_http: 'streamable-http',
  sse: 'sse',
  remote: 'auto',
} as const;

/** Keys that are read. A `url` may have variables in it, so that it is looked at later. */
export const ENTRY = z.looseObject(
  {
    command: z.union([text, texts], { error: 'a text or a list of texts' }).optional(),
    args: texts.optional(),
    env: byName(scalar).optional(),
    environment: byName(scalar).optional(),
    env_vars: z.array(z.union([text, z.looseObject({ name: text })]), { error: 'a list of names' }).optional(),
    envFile: text.optional(),
    cwd: text.optional(),
    url: text.optional(),
    serverUrl: text.optional(),
    httpUrl: text.optional(),
    type: text.optional(),
    transport: text.optional(),
    headers: byName(text).optional(),
    http_headers: byName(text).optional(),
    env_http_headers: byName(text).optional(),
    bearer_token_env_var: text.optional(),
    disabled: flag.optional(),
    enabled: flag.optional(),
    timeout: z
      .union([ms, z.looseObject({ request: ms.optional() })], { error: 'a number of milliseconds above 0' })
      .optional(),
    tool_timeout_sec: seconds.optional(),
    includeTools: texts.optional(),
    enabledTools: texts.optional(),
    enabled_tools: texts.optional(),
    excludeTools: texts.optional(),
    disabledTools: texts.optional(),
    disabled_tools: texts.optional(),
    protocolEra: z.enum(['auto', 'legacy', 'modern'], { error: 'auto, legacy or modern' }).optional(),
    required: flag.optional(),
    portage: byName(z.unknown()).optional(),
  },
  { error: 'an object' },
);

export type Entry = z.infer<typeof ENTRY>;

/** Keys of hosts that are about the host itself, or that nothing here corresponds to. */
export const HARMLESS: ReadonlySet<string> = new Set([
  'alwaysAllow',
  'auth',
  'authProviderType',
  'autoApprove',
  'default_tools_approval_mode',
  'description',
  'dev',
  'displayName',
  'experimental_environment',
  'extension_name',
  'gallery',
  'icon',
  'iconUrl',
  'id',
  'metadata',
  'name',
  'note',
  'oauth',
  'oauth_resource',
  'sandbox',
  'sandboxEnabled',
  'scopes',
  'startup_timeout_ms',
  'startup_timeout_sec',
  'supports_parallel_tool_calls',
  'targetAudience',
  'tools',
  'trust',
  'version',
]);

/** How the host logs in there: that it is not done here should not be a surprise. */
export const HOST_LOGIN: readonly string[] = ['oauth', 'auth', 'authProviderType'];

/** For editors: the file of any of these hosts, with our own key in it. */
export function createSchema(): unknown {
  const entry = ENTRY.extend({ portage: schemaOf('entry').optional() });
  const servers = z.record(z.string(), entry).optional();
  const file = z.looseObject({
    mcpServers: servers,
    servers,
    mcp_servers: servers,
    mcp: z.looseObject({ servers }).optional(),
    inputs: z.array(z.looseObject({ id: z.string(), default: z.string().optional() })).optional(),
    portage: schemaOf('top').optional(),
  });
  return { ...z.toJSONSchema(file, { io: 'input' }), title: 'A configuration file for mcp-portage' };
}
