/** Keys of hosts that are about the host itself, or that nothing here corresponds to. */
export const HARMLESS: ReadonlySet<string> = new Set([
  'alwaysAllow',
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
