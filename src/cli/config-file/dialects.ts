/**
 * Differences between the files of hosts: the key with the servers, and keys that matter to the host alone. Hosts are
 * told apart by their keys and not by file names, as every host has used several names.
 */
import { basename, dirname, isAbsolute } from 'node:path';
import type { ConfigNode, ObjectNode, Path } from './config-tree.ts';

export type Language = 'json' | 'toml' | 'yaml';

export interface FoundServers {
  /** For servers of the same name in several lists, the first list has precedence. */
  readonly lists: readonly ServerList[];
  /** The values that VS Code would ask its user for. */
  readonly inputs: ConfigNode | undefined;
  readonly dialect: Dialect;
  /** Other keys of this file under which hosts have servers; these are not read. */
  readonly shadowed: readonly string[];
  /** Keys outside of the entries that disable servers or tools in ways that are not supported here. */
  readonly switches: readonly string[];
}

export interface ServerList {
  readonly path: Path;
  readonly servers: ConfigNode;
  /** The project folder of these servers; undefined if they belong to the whole file. */
  readonly folder: string | undefined;
  /** Returns true if the file disables the server of this name outside of its entry. */
  isOff(name: string): boolean;
}

/** The meaning of texts and numbers that differs between hosts. */
export interface Dialect {
  /** The accepted spellings of variables. With `bare`, `$NAME` is a variable, too. */
  readonly variables: 'common' | 'opencode' | 'bare';
  /** The meaning of a number as `timeout`: the time limit of a call in milliseconds or seconds, or something else. */
  readonly timeout: 'call' | 'seconds' | 'other';
  /** The transport of a server of the type `http`; with `auto`, it may also speak HTTP+SSE. */
  readonly http: 'streamable-http' | 'auto';
}

const COMMON: Dialect = { variables: 'common', timeout: 'call', http: 'streamable-http' };
const VS_CODE: Dialect = { ...COMMON, http: 'auto' };
const OPENCODE: Dialect = { ...COMMON, variables: 'opencode', timeout: 'other' };
const GEMINI: Dialect = { ...COMMON, variables: 'bare' };
const GOOSE: Dialect = { ...COMMON, variables: 'bare', timeout: 'seconds' };
/** Hermes and Codex count in seconds. The timeouts of Codex have their own key. */
const IN_SECONDS: Dialect = { ...COMMON, timeout: 'seconds' };

export const EXPECTED_KEYS = 'context_servers, extensions, mcpServers, servers, mcp_servers or mcp';

const KEYS: readonly string[] = ['mcpServers', 'servers', 'mcp_servers', 'context_servers'];
/** Editors and Amp name their settings with a single dotted key. */
const DOTTED_KEY = /\.(?:mcpServers|mcp_servers|context_servers)$|(?:^|\.)mcp\.servers$/;

export interface FilePlace {
  /** The absolute path of the file. */
  readonly path: string;
  readonly language: Language;
  readonly cwd: string;
}

/** Returns undefined if the file has none of the keys under which hosts list servers. */
export function findServers(root: ObjectNode, place: FilePlace): FoundServers | undefined {
  const switches = findSwitches(root);
  const [key, ...shadowed] = [
    ...KEYS.filter((known) => root.members.has(known)),
    ...[...root.members.keys()].filter((name) => DOTTED_KEY.test(name)),
    ...(place.language === 'yaml' && root.members.has('extensions') ? ['extensions'] : []),
  ];
  const projects = key === undefined || key === 'mcpServers' ? findProjects(root) : [];
  const servers = key === undefined ? undefined : root.members.get(key);
  // Gemini CLI has its servers under mcpServers and other settings under mcp.
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

/**
 * Gemini CLI starts only servers that are allowed and not excluded. Older versions have other names for these lists.
 */
function isOffForGemini({ members }: ObjectNode): ServerList['isOff'] {
  const mcp = members.get('mcp');
  const inMcp = (key: string): ConfigNode | undefined => (mcp?.kind === 'object' ? mcp.members.get(key) : undefined);
  const allowed = textsIn(inMcp('allowed') ?? members.get('allowMCPServers'));
  const excluded = textsIn(inMcp('excluded') ?? members.get('excludeMCPServers'));
  return (name) => excluded?.includes(name) === true || allowed?.includes(name) === false;
}

/** Returns undefined if the node is not a list. */
function textsIn(node: ConfigNode | undefined): readonly string[] | undefined {
  if (node?.kind !== 'list') return undefined;
  return node.items.flatMap((item) => (item.kind === 'text' ? [item.value] : []));
}

/** Claude Code lists servers of single projects beside those for all projects. */
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

/** If the current folder is a project, its servers have precedence over those for all projects, as in Claude Code. */
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
    // VS Code and opencode 2 have the same keys here. Only VS Code has inputs and ${…}; only opencode has {…}.
    return { inputs, lists: list(['mcp', 'servers'], servers), dialect: { ...VS_CODE, variables: 'opencode' } };
  }
  const hasEntries = mcp.members.size === 0 || [...mcp.members.values()].some(isEntry);
  return hasEntries ? { inputs, lists: list(['mcp'], mcp), dialect: OPENCODE } : undefined;
}

/** Returns true for the entry of a server that happens to be called `servers`, as opposed to a list of servers. */
function isEntry(node: ConfigNode): boolean {
  if (node.kind !== 'object') return false;
  return ['type', 'command', 'url', 'enabled'].some((key) => {
    const member = node.members.get(key);
    return member !== undefined && member.kind !== 'object';
  });
}

/**
 * Finds keys that disable tools outside of entries. In opencode, patterns under `tools` begin with the name of a
 * server; Amp has rules for servers and tools.
 */
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

/** Returns true if the entry disables its server, in the spelling of any host. */
export function isSwitchedOff({ members }: ObjectNode): boolean {
  const disabled = members.get('disabled');
  return (
    (disabled?.kind === 'boolean' && disabled.value) ||
    ['enabled', 'active', 'isActive'].some((key) => isFalse(members.get(key)))
  );
}

/** Returns true for a server that LibreChat connects to only when a user asks for it. */
export function isNotStartedAtOnce({ members }: ObjectNode): boolean {
  return isFalse(members.get('startup'));
}

const BUILT_IN_TYPES: readonly string[] = ['builtin', 'platform', 'frontend', 'inline_python', 'inMemory'];

/** Returns true if the entry is not a server but a part of its host: goose, Cherry Studio, or a Zed extension. */
export function isBuiltIn({ members }: ObjectNode): boolean {
  const type = members.get('type');
  if (type?.kind === 'text' && BUILT_IN_TYPES.includes(type.value)) return true;
  const isServer = ['command', 'url', 'socket'].some((key) => members.has(key));
  return members.has('settings') && !isServer;
}

/** Keys for hosts only. Their values are accepted unchecked. */
const MEANINGLESS: readonly string[] = [
  // Keys for editors and web pages.
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
  // Keys about calls that need the user's approval.
  ...['trust', 'autoApprove', 'alwaysAllow', 'default_tools_approval_mode', 'supports_parallel_tool_calls', 'tools'],
  // Keys about the way the host starts and shows the server.
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

/**
 * Keys for the host's own login. They get a warning, since the server will probably require a login from us as well.
 */
const LOGIN: readonly string[] = [
  ...['oauth', 'auth', 'authProviderType', 'targetAudience', 'targetServiceAccount'],
  ...['scopes', 'oauth_resource', 'oauth_client_id', 'requiresOAuth'],
];

/** Keys that name a program whose output is headers. */
const HELPER: readonly string[] = ['headersHelper'];

export type KeyMeaning = 'meaningless' | 'login' | 'helper' | 'unknown';

export function meaningOf(key: string): KeyMeaning {
  if (MEANINGLESS.includes(key)) return 'meaningless';
  if (LOGIN.includes(key)) return 'login';
  return HELPER.includes(key) ? 'helper' : 'unknown';
}
