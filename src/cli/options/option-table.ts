/**
 * Every option, once, as data. From this table come the parsing of the command line and the groups of --help, the
 * environment names, shell completion, the spelling suggestions and the table in
 * docs/reference/options.md. What a value means and
 * which are allowed is in parse/value.ts; which go together is in parse/config.ts.
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

/** Values by option name as written on the command line, in order. Flags come as `true` and `false`. */
export type CommandLineOptions = ReadonlyMap<OptionName, readonly string[]>;

const byName: ReadonlyMap<string, OptionSpec> = new Map(OPTIONS.map((option) => [option.name, option]));

export function findOption(name: string): OptionSpec | undefined {
  return byName.get(name);
}

export function isOptionName(name: string): name is OptionName {
  return byName.has(name);
}

/** What is about one server: for all of a file it would be a mistake, and show a credential to servers it is not for. */
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

/** Prefix of everything the bridge itself reads from the environment; no such name is ever passed to the child. */
export const ENV_PREFIX = 'MCP_PORTAGE_';

/**
 * A setting that is no option: other users of a machine can read command lines, and they stay in the history of
 * the shell.
 */
export const BEARER_TOKEN_VARIABLE = 'MCP_PORTAGE_BEARER_TOKEN';
export const BEARER_TOKEN_NOTE = 'Bearer token to send; not an option, since other users can read command lines';

/** A setting that is no option, for the reasons that the token has. */
export const CLIENT_SECRET_VARIABLE = 'MCP_PORTAGE_OAUTH_CLIENT_SECRET';
export const CLIENT_SECRET_NOTE = 'Secret of that client; not an option, since other users can read command lines';

interface VariableSpec {
  readonly group: OptionGroup;
  readonly name: string;
  readonly note: string;
  readonly verbs: readonly BridgeVerb[];
}

/** Other commands send nothing to a server. */
const TO_SERVERS: readonly BridgeVerb[] = ['serve', 'connect', 'probe'];

/** Settings that are no options, by the group of options they belong to. */
export const VARIABLES: readonly VariableSpec[] = [
  { group: 'remote', name: BEARER_TOKEN_VARIABLE, note: BEARER_TOKEN_NOTE, verbs: TO_SERVERS },
  { group: 'login', name: CLIENT_SECRET_VARIABLE, note: CLIENT_SECRET_NOTE, verbs: [...TO_SERVERS, 'login', 'logout'] },
];

/** `max-sessions` → `MCP_PORTAGE_MAX_SESSIONS`. */
export function envNameOf(optionName: string): string {
  return ENV_PREFIX + optionName.toUpperCase().replaceAll('-', '_');
}
