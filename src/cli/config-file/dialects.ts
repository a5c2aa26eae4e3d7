/**
 * How the files of hosts differ: where servers stand in them, and which keys have a meaning for the host alone. Hosts are
 * told apart by their keys: every one has called its file several names.
 */
import { basename, dirname, isAbsolute } from 'node:path';
import type { ConfigNode, ObjectNode, Path } from './config-tree.ts';

export type Language = 'json' | 'toml' | 'yaml';

export interface FoundServers {
  /** Where several of them have a server of the same name, the first one has precedence. */
  readonly lists: readonly ServerList[];
  /** What VS Code asks its user for. */
  readonly inputs: ConfigNode | undefined;
  readonly dialect: Dialect;
  /** Keys that other hosts have their servers under, which this file has besides. */
  readonly shadowed: readonly string[];
  /** Keys outside of the servers that switch something off in a way that is not read. */
  readonly switches: readonly string[];
}

export interface ServerList {
  readonly path: Path;
  readonly servers: ConfigNode;
  /** The folder that these servers are for; undefined: the one of the file. */
  readonly folder: string | undefined;
  /** Whether the file switches off the server of this name, outside of its entry. */
  isOff(name: string): boolean;
}

/** What texts and numbers mean where hosts differ. */
export interface Dialect {
  /** `bare`: `$NAME` is a variable, too. */
  readonly variables: 'common' | 'opencode' | 'bare';
  /** What a bare number says as `timeout`: the time for a call, in milliseconds or seconds, or for something else. */
  readonly timeout: 'call' | 'seconds' | 'other';
  /** Whether a server of the type `http` may also speak HTTP+SSE. */
  readonly http: 'streamable-http' | 'auto';
}

const COMMON: Dialect = { variables: 'common', timeout: 'call', http: 'streamable-http' };
const VS_CODE: Dialect = { ...COMMON, http: 'auto' };
const OPENCODE: Dialect = { ...COMMON, variables: 'opencode', timeout: 'other' };
const GEMINI: Dialect = { ...COMMON, variables: 'bare' };
const GOOSE: Dialect = { ...COMMON, variables: 'bare', timeout: 'seconds' };
/** Codex, whose timeouts have a name of their own, and Hermes count in seconds. */
const IN_SECONDS: Dialect = { ...COMMON, timeout: 'seconds' };

export const EXPECTED_KEYS = 'context_servers, extensions, mcpServers, servers, mcp_servers or mcp';

const KEYS: readonly string[] = ['mcpServers', 'servers', 'mcp_servers', 'context_servers'];
/** Settings of editors and of Amp have such names as one key. */
const DOTTED_KEY = /\.(?:mcpServers|mcp_servers|context_servers)$|(?:^|\.)mcp\.servers$/;

export interface FilePlace {
  /** Absolute. */
  readonly path: string;
  readonly language: Language;
  readonly cwd: string;
}

/** Undefined: no host has such a file. */
export function findServers(root: ObjectNode, place: FilePlace): FoundServers | undefined {
  const switches = findSwitches(root);
  const [key, ...shadowed] = [
    ...KEYS.filter((known) => root.members.has(known)),
    ...[...root.members.keys()].filter((name) => DOTTED_KEY.test(name)),
    ...(place.language === 'yaml' && root.members.has('extensions') ? ['extensions'] : []),
  ];
  const projects = key === undefined || key === 'mcpServers' ? findProjects(root) : [];
  const servers = key === undefined ? undefined : root.members.get(key);
  // Gemini CLI has its servers under mcpServers, and under mcp something else.
  if ((key === undefined || servers === undefined) && projects.length === 0) {
    const below = findBelowMcp(root.members.get('mcp'));
    return below && { ...below, shadowed: [], switches };
  }
  const inputs = key === 'servers' ? root.members.get('inputs') : undefined;
  const ofFile =
    key === undefined || servers === undefined
      ? []
      : [{ path: [key], servers, folder: undefined, isOff: isOffForGemini(root) }];
  const lists = inOrder(ofFile, projects, place.cwd);
  return { lists, inputs, dialect: dialectOf(key, root, servers, place), shadowed, switches };
}

function dialectOf(
  key: string | undefined,
  root: ObjectNode,
  servers: ConfigNode | undefined,
  { path }: FilePlace,
): Dialect {
  if (key === 'extensions') return GOOSE;
  if (key === 'mcp_servers') return IN_SECONDS;
  if (key === 'servers' || key?.endsWith('mcp.servers')) return VS_CODE;
  const mcp = root.members.get('mcp');
  const isGemini =
    basename(dirname(path)) === '.gemini' ||
    (mcp?.kind === 'object' && (mcp.members.has('allowed') || mcp.members.has('excluded'))) ||
    (servers?.kind === 'object' && [...servers.members.values()].some(hasHttpUrl));
  return key === 'mcpServers' && isGemini ? GEMINI : COMMON;
}

function hasHttpUrl(entry: ConfigNode): boolean {
  return entry.kind === 'object' && entry.members.has('httpUrl');
}

/** Gemini CLI never starts a server that is not among those allowed, or is excluded; older versions have other names. */
function isOffForGemini({ members }: ObjectNode): ServerList['isOff'] {
  const mcp = members.get('mcp');
  const inMcp = (key: string): ConfigNode | undefined => (mcp?.kind === 'object' ? mcp.members.get(key) : undefined);
  const allowed = textsIn(inMcp('allowed') ?? members.get('allowMCPServers'));
  const excluded = textsIn(inMcp('excluded') ?? members.get('excludeMCPServers'));
  return (name) => excluded?.includes(name) === true || allowed?.includes(name) === false;
}

/** Undefined: there is no list. */
function textsIn(node: ConfigNode | undefined): readonly string[] | undefined {
  if (node?.kind !== 'list') return undefined;
  return node.items.flatMap((item) => (item.kind === 'text' ? [item.value] : []));
}

/** Claude Code has servers of single projects beside those for all. */
function findProjects(root: ObjectNode): readonly (ServerList & { readonly folder: string })[] {
  const projects = root.members.get('projects');
  if (projects?.kind !== 'object') return [];
  return [...projects.members].flatMap(([folder, project]) => {
    const servers = project.kind === 'object' ? project.members.get('mcpServers') : undefined;
    if (project.kind !== 'object' || servers?.kind !== 'object' || servers.members.size === 0) return [];
    if (!isAbsolute(folder)) return [];
    const off = textsIn(project.members.get('disabledMcpServers'));
    const path = ['projects', folder, 'mcpServers'];
    return [{ path, servers, folder, isOff: (name: string) => off?.includes(name) === true }];
  });
}

/** In the folder of a project its servers have precedence over those for all, as in Claude Code. */
function inOrder(
  ofFile: readonly ServerList[],
  projects: readonly (ServerList & { readonly folder: string })[],
  cwd: string,
): readonly ServerList[] {
  const current = projects.filter(({ folder }) => folder === cwd);
  return [...current, ...ofFile, ...projects.filter(({ folder }) => folder !== cwd)];
}

function findBelowMcp(mcp: ConfigNode | undefined): Omit<FoundServers, 'shadowed' | 'switches'> | undefined {
  if (mcp?.kind !== 'object') return undefined;
  const inputs = mcp.members.get('inputs');
  const list = (path: Path, servers: ConfigNode) => [{ path, servers, folder: undefined, isOff: () => false }];
  const servers = mcp.members.get('servers');
  if ((servers?.kind === 'object' || servers?.kind === 'list') && !isEntry(servers)) {
    // The settings of VS Code and opencode 2 have the same keys here; inputs and ${…} are of the one, {…} of the other.
    return { inputs, lists: list(['mcp', 'servers'], servers), dialect: { ...VS_CODE, variables: 'opencode' } };
  }
  const hasEntries = mcp.members.size === 0 || [...mcp.members.values()].some(isEntry);
  return hasEntries ? { inputs, lists: list(['mcp'], mcp), dialect: OPENCODE } : undefined;
}

/** Rather a server called `servers` than a list of them. */
function isEntry(node: ConfigNode): boolean {
  if (node.kind !== 'object') return false;
  return ['type', 'command', 'url', 'enabled'].some((key) => {
    const member = node.members.get(key);
    return member !== undefined && member.kind !== 'object';
  });
}

/** opencode has tools under patterns that begin with the name of a server, Amp has rules for servers and tools. */
function findSwitches({ members }: ObjectNode): readonly string[] {
  const tools = members.get('tools');
  const hasOff = tools?.kind === 'object' && [...tools.members.values()].some(isFalse);
  return [
    ...(hasOff && members.has('mcp') ? ['tools'] : []),
    ...['amp.tools.disable', 'amp.mcpPermissions'].filter((key) => members.has(key)),
  ];
}

function isFalse(node: ConfigNode | undefined): boolean {
  return node?.kind === 'boolean' && !node.value;
}

/** Whether its entry switches a server off, under any of the names that hosts have for that. */
export function isSwitchedOff({ members }: ObjectNode): boolean {
  const disabled = members.get('disabled');
  return (
    (disabled?.kind === 'boolean' && disabled.value) ||
    ['enabled', 'active', 'isActive'].some((key) => isFalse(members.get(key)))
  );
}

/** LibreChat connects to such a server only when one of its users asks for that. */
export function isNotStartedAtOnce({ members }: ObjectNode): boolean {
  return isFalse(members.get('startup'));
}

const BUILT_IN_TYPES: readonly string[] = ['builtin', 'platform', 'frontend', 'inline_python', 'inMemory'];

/** Whether an entry is about a part of its host: of goose or Cherry Studio, or an extension of Zed. */
export function isBuiltIn({ members }: ObjectNode): boolean {
  const type = members.get('type');
  if (type?.kind === 'text' && BUILT_IN_TYPES.includes(type.value)) return true;
  const isServer = ['command', 'url', 'socket'].some((key) => members.has(key));
  return members.has('settings') && !isServer;
}

/** Keys of hosts that say nothing to us. Whatever stands under them is taken without a look. */
const MEANINGLESS: readonly string[] = [
  // Editors and their pages.
  ...[
    '$schema',
    'name',
    'title',
    'displayName',
    'display_name',
    'description',
    'icon',
    'iconUrl',
    'iconPath',
    'faviconUrl',
    'logoUrl',
    'version',
    'gallery',
    'metadata',
    'note',
    'id',
    'tags',
    'provider',
    'providerUrl',
    'serverName',
    'sourceFile',
    'settings',
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
    'bundled',
    'chatMenu',
    'serverInstructions',
    'startup',
    'stderr',
  ],
  ...['startup_timeout_sec', 'startup_timeout_ms', 'networkTimeout', 'experimental_environment', 'environment_id'],
  ...['connectionTimeout', 'connect_timeout', 'initTimeout', 'sseReadTimeout'],
  ...['remoteConfigured', 'roots', 'withCredentials', 'disabledReason', 'tcp_keepalive'],
];

/** The login of the host: without another the server would refuse us. */
const LOGIN: readonly string[] = [
  ...['oauth', 'auth', 'authProviderType', 'targetAudience', 'targetServiceAccount'],
  ...['scopes', 'oauth_resource', 'oauth_client_id', 'requiresOAuth'],
];

/** A program that makes headers. */
const HELPER: readonly string[] = ['headersHelper'];

export type KeyMeaning = 'meaningless' | 'login' | 'helper' | 'unknown';

export function meaningOf(key: string): KeyMeaning {
  if (MEANINGLESS.includes(key)) return 'meaningless';
  if (LOGIN.includes(key)) return 'login';
  return HELPER.includes(key) ? 'helper' : 'unknown';
}
