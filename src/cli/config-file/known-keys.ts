/** Keys of hosts that say nothing to us. Whatever stands under them is taken without a look. */

const MEANINGLESS: readonly string[] = [
  // Editors and their pages.
  ...[
    '$schema',
    'name',
    'title',
    'displayName',
    'description',
    'icon',
    'iconUrl',
    'version',
    'gallery',
    'metadata',
    'note',
  ],
  // Which calls a user is asked about.
  ...['trust', 'autoApprove', 'alwaysAllow', 'default_tools_approval_mode', 'supports_parallel_tool_calls', 'tools'],
  // When and where the host starts the server, and what it shows of it.
  ...[
    'dev',
    'watchPaths',
    'sandbox',
    'sandboxEnabled',
    'alwaysLoad',
    'codemode',
    'extension',
    'extensionName',
    'source',
  ],
  ...['startup_timeout_sec', 'startup_timeout_ms', 'networkTimeout', 'experimental_environment', 'environment_id'],
  ...['remoteConfigured', 'roots', 'withCredentials', 'disabledReason', 'tcp_keepalive'],
];

/** The login of the host: without another the server would refuse us. */
const LOGIN: readonly string[] = [
  ...['oauth', 'auth', 'authProviderType', 'targetAudience', 'targetServiceAccount'],
  ...['scopes', 'oauth_resource', 'oauth_client_id'],
];

/** A program that makes headers. */
const HELPER: readonly string[] = ['headersHelper'];

export type KeyMeaning = 'meaningless' | 'login' | 'helper' | 'unknown';

export function meaningOf(key: string): KeyMeaning {
  if (MEANINGLESS.includes(key)) return 'meaningless';
  if (LOGIN.includes(key)) return 'login';
  return HELPER.includes(key) ? 'helper' : 'unknown';
}
