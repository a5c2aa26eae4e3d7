/** Where the servers stand in the file of each host. Hosts are told apart by their keys: every one has called its file several names. */
import type { ConfigNode, ObjectNode, Path } from './config-tree.ts';

export interface FoundServers {
  readonly path: Path;
  readonly servers: ConfigNode;
  /** What VS Code asks its user for. */
  readonly inputs: ConfigNode | undefined;
  readonly dialect: Dialect;
  /** Keys that other hosts have their servers under, which this file has besides. */
  readonly shadowed: readonly string[];
}

/** What texts and numbers mean where hosts differ. */
export interface Dialect {
  readonly variables: 'common' | 'opencode';
  /** What a bare number says as `timeout`: the time for a call, or for something that has no option here. */
  readonly timeout: 'call' | 'other';
}

const COMMON: Dialect = { variables: 'common', timeout: 'call' };
const OPENCODE: Dialect = { variables: 'opencode', timeout: 'other' };

export const EXPECTED_KEYS = 'mcpServers, servers, mcp_servers or mcp';

/** Undefined: no host has such a file. */
export function findServers(root: ObjectNode): FoundServers | undefined {
  const keys = ['mcpServers', 'servers', 'mcp_servers'].filter((key) => root.members.has(key));
  const [key, ...shadowed] = keys;
  const servers = key === undefined ? undefined : root.members.get(key);
  // Gemini CLI has its servers under mcpServers, and under mcp something else.
  if (key === undefined || servers === undefined) return findBelowMcp(root.members.get('mcp'));
  const inputs = key === 'servers' ? root.members.get('inputs') : undefined;
  return { path: [key], servers, inputs, dialect: COMMON, shadowed };
}

function findBelowMcp(mcp: ConfigNode | undefined): FoundServers | undefined {
  if (mcp?.kind !== 'object') return undefined;
  const found = { shadowed: [], inputs: mcp.members.get('inputs') };
  const servers = mcp.members.get('servers');
  if (servers?.kind === 'object' && !isEntry(servers)) {
    // The settings of VS Code and opencode 2 have the same keys here; inputs and ${…} are of the one, {…} of the other.
    return { ...found, path: ['mcp', 'servers'], servers, dialect: { variables: 'opencode', timeout: 'call' } };
  }
  const hasEntries = mcp.members.size === 0 || [...mcp.members.values()].some(isEntry);
  return hasEntries ? { ...found, path: ['mcp'], servers: mcp, dialect: OPENCODE } : undefined;
}

/** Rather a server called `servers` than a list of them. */
function isEntry(node: ConfigNode): boolean {
  if (node.kind !== 'object') return false;
  return ['type', 'command', 'url', 'enabled'].some((key) => {
    const member = node.members.get(key);
    return member !== undefined && member.kind !== 'object';
  });
}
