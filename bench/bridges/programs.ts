/** How each program is started: the way its users do, with its own defaults but for the port. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Era } from '../load/workload.ts';
import type { Program } from '../measure/processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const inBench = (path: string): string => join(ROOT, 'bench', path);

export const PEERS = {
  supergateway: 'supergateway/dist/index.js',
  'mcp-proxy': 'mcp-proxy/dist/bin/mcp-proxy.mjs',
  'mcp-remote': 'mcp-remote/dist/proxy.js',
} as const;

export type Peer = keyof typeof PEERS;

const peerPath = (peer: Peer): string => inBench(`node_modules/${PEERS[peer]}`);

export function isInstalled(peer: Peer): boolean {
  return existsSync(peerPath(peer));
}

/** The version that is measured, of a peer or, by '', of mcp-portage. */
export function readVersion(peer: Peer | ''): string {
  const path = peer === '' ? join(ROOT, 'package.json') : inBench(`node_modules/${peer}/package.json`);
  return String(JSON.parse(readFileSync(path, 'utf8')).version);
}

export const rootPath = ROOT;

export function stdioServer(era: Era): string[] {
  return [inBench('server/stdio.js'), era];
}

export function httpServer(port: number): Program {
  return { args: [inBench('server/http.js'), String(port)] };
}

export function floor(name: string, ...args: string[]): Program {
  return { args: [inBench(`floor/${name}.js`), ...args] };
}

export function portage(...args: string[]): Program {
  return { args: [join(ROOT, 'bin/mcp-portage.js'), ...args] };
}

/** One of many servers of a configuration file, each of which is the bench server. */
export const LISTED = { servers: 100, path: '/server-50/mcp' } as const;

/** A few of them, which the aggregate makes one of. */
export const COMBINED = { servers: 10, name: 'server-5', path: '/server-5/mcp' } as const;

const files = new Map<string, string>();

/** A file with many servers; made when it is first asked for. */
export function manyServersFile(era: Era = 'legacy', servers: number = LISTED.servers): string {
  const key = `${servers} ${era}`;
  const file = files.get(key) ?? writeManyServers(era, servers);
  files.set(key, file);
  return file;
}

function writeManyServers(era: Era, servers: number): string {
  const entry = { command: 'node', args: stdioServer(era) };
  const names = Array.from({ length: servers }, (_, index) => `server-${index}`);
  const file = join(mkdtempSync(join(tmpdir(), 'mcp-portage-bench-')), 'mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, entry])) }));
  return file;
}

/** Status page, figures for Prometheus, usage that is kept, and a line for each call. */
export function observedOptions(): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-bench-'));
  return ['--metrics', '--usage', '--state-dir', folder, '--audit-file', join(folder, 'audit.jsonl')];
}

/** Every message in a file, with secrets hidden. */
export function recordOptions(): readonly string[] {
  return ['--record', join(mkdtempSync(join(tmpdir(), 'mcp-portage-bench-')), 'record.jsonl')];
}

/** As where no earlier start has left compiled code. */
export function asFirst(program: Program): Program {
  return { ...program, env: { ...program.env, NODE_DISABLE_COMPILE_CACHE: '1' } };
}

export function supergateway(...args: string[]): Program {
  return { args: [peerPath('supergateway'), ...args] };
}

export function mcpProxy(...args: string[]): Program {
  return { args: [peerPath('mcp-proxy'), ...args] };
}

/** It keeps files about servers; not among the user's. */
export function mcpRemote(...args: string[]): Program {
  return {
    args: [peerPath('mcp-remote'), ...args],
    env: { MCP_REMOTE_CONFIG_DIR: join(tmpdir(), 'mcp-portage-bench-mcp-remote') },
  };
}
