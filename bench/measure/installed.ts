/** What a user gets on disk: the package with what it needs at run time, installed into an empty folder. */
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Peer, readVersion, rootPath } from '../bridges/programs.ts';
import type { Metric } from './records.ts';

export function measureInstalled(name: Peer | 'mcp-portage'): Partial<Record<Metric, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-bench-'));
  try {
    const npm = (args: readonly string[], cwd: string): string =>
      execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    let spec = name === 'mcp-portage' ? '' : `${name}@${readVersion(name)}`;
    if (name === 'mcp-portage') {
      const packed = npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], rootPath);
      spec = join(folder, JSON.parse(packed)[0].filename);
    }
    npm(['install', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder, spec], folder);
    const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'));
    const bytes = sizeOf(join(folder, 'node_modules'));
    return { installedMiB: bytes / 1024 / 1024, packages: Object.keys(lock.packages).length };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function sizeOf(path: string): number {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
