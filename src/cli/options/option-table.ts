/**
 * All options as data. The table drives command-line parsing, --help, the names of environment variables, shell
 * completion, spelling suggestions, and docs/reference/options.md. parse/value.ts defines the allowed values, and
 * parse/config.ts the allowed combinations.
 */
import { CLUSTER_OPTIONS } from './cluster.ts';
import { HUB_OPTIONS } from './hubs.ts';
import { LISTENING_OPTIONS } from './listening.ts';
import { LOGIN_OPTIONS } from './login.ts';
import { OBSERVING_OPTIONS } from './observing.ts';
import type { BridgeVerb, OptionGroup, OptionSpec } from './option-spec.ts';
import { OUTPUT_OPTIONS } from './output.ts';
import { REMOTE_OPTIONS } from './remote.ts';
import { SERVER_OPTIONS } from './server.ts';
import { SESSIONS_OPTIONS } from './sessions.ts';

export const OPTIONS = [
  ...LISTENING_OPTIONS,
  ...HUB_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...SERVER_OPTIONS,
  ...REMOTE_OPTIONS,
  ...LOGIN_OPTIONS,
  ...SESSIONS_OPTIONS,
  ...OBSERVING_OPTIONS,
  ...OUTPUT_OPTIONS,
] as const;

export type OptionName = (typeof OPTIONS)[number]['name'];

/** Values by option name as written on the command line, in order. The value of a flag is `true` or `false`. */
export type CommandLineOptions = ReadonlyMap<OptionName, readonly string[]>;

const byName: ReadonlyMap<string, OptionSpec> = new Map(OPTIONS.map((option) => [option.name, option]));

export function findOption(name: string): OptionSpec | undefined {
  return byName.get(name);
}

export function isOptionName(name: string): name is OptionName {
  return byName.has(name);
}

/**
 * Options that apply to a single server. Set for all servers of a file, they would be a mistake, and could disclose a
 * credential to the wrong servers.
 */
export const OF_ONE_SERVER: readonly OptionName[] = [
  'dial',
  'dial-header',
  'dial-token',
  'dial-ca',
  'header',
  'header-file',
  'bearer-token-file',
  'client-cert',
  'client-key',
  'oauth-client-id',
  'oauth-secret-file',
  'oauth-client-key',
  'oauth-assertion-file',
  'oauth-auth-method',
  'oauth-scope',
  'oauth-resource',
  'oauth-param',
  'env',
  'env-from',
  'cwd',
];

/** The prefix of all variables that the bridge reads from its environment. Children never inherit variables with it. */
export const ENV_PREFIX = 'MCP_PORTAGE_';

/**
 * A variable without a corresponding option: other users can read command lines, and shells keep them in their history.
 */
export const BEARER_TOKEN_VARIABLE = 'MCP_PORTAGE_BEARER_TOKEN';
export const BEARER_TOKEN_NOTE = 'Bearer token to send; not an option, since other users can read command lines';

/** A variable without a corresponding option, for the same reasons as `BEARER_TOKEN_VARIABLE`. */
export const CLIENT_SECRET_VARIABLE = 'MCP_PORTAGE_OAUTH_CLIENT_SECRET';
export const CLIENT_SECRET_NOTE = 'Secret of that client; not an option, since other users can read command lines';

interface VariableSpec {
  readonly group: OptionGroup;
  readonly name: string;
  readonly note: string;
  readonly verbs: readonly BridgeVerb[];
}

/** The commands that use a server, apart from logging in and out. */
const TO_SERVERS: readonly BridgeVerb[] = ['serve', 'connect', 'probe'];

/** Variables without a corresponding option, with the group that they are listed in. */
export const VARIABLES: readonly VariableSpec[] = [
  { group: 'remote', name: BEARER_TOKEN_VARIABLE, note: BEARER_TOKEN_NOTE, verbs: TO_SERVERS },
  { group: 'login', name: CLIENT_SECRET_VARIABLE, note: CLIENT_SECRET_NOTE, verbs: [...TO_SERVERS, 'login', 'logout'] },
];

/** Converts `max-sessions` to `MCP_PORTAGE_MAX_SESSIONS`. */
export function envNameOf(optionName: string): string {
  return ENV_PREFIX + optionName.toUpperCase().replaceAll('-', '_');
}
