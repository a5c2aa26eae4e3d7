/**
 * `npm run hosts` installs the hosts that the npm registry has, one after the other in a cache outside of the repository,
 * and tries the built program with them in a process without a network (try-hosts.ts). `--write` renews the page in the
 * documents. Exit code 1: something failed; what cannot be had is skipped with the reason.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { VERSION } from '../../src/version.ts';
import { HOSTS, type Host } from './hosts.ts';
import { installNode, installPackage } from './install.ts';
import { ISOLATED, whyNotIsolated } from './isolation.ts';
import { renderLine, renderPage, renderSummary } from './report.ts';
import type { Result } from './results.ts';
import type { TryRequest } from './try-hosts.ts';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = new URL('../../docs/reference/hosts.md', import.meta.url);
const USUAL_CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mcp-portage', 'hosts');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    cache: { type: 'string', default: USUAL_CACHE },
    record: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const cache = resolve(values.cache);
const unknown = positionals.find((name) => !HOSTS.some((host) => host.name === name));
const names = HOSTS.map(({ name }) => name).join(', ');
if (unknown !== undefined) throw new Error(`there is no host ${unknown}; there are ${names}`);
if (values.write && positionals.length > 0) throw new Error('--write is for a run of all hosts');
if (`${cache}${sep}`.startsWith(REPOSITORY)) throw new Error('--cache has to be outside of the repository');

const results: Result[] = [];
const chosen = positionals.length === 0 ? HOSTS : HOSTS.filter(({ name }) => positionals.includes(name));
const whyNot = whyNotIsolated();
if (whyNot === undefined) {
  const path = await installNode(cache);
  for (const host of chosen) await tryHost(host, path);
} else {
  for (const host of chosen) skip(host, whyNot);
}
console.log(renderSummary(results));
if (values.write) {
  const commands = new Map(HOSTS.map(({ title, command }) => [title, command]));
  const date = new Date().toISOString().slice(0, 10);
  await writeFile(PAGE, renderPage(results, commands, { date, version: VERSION }));
}
process.exitCode = results.some(({ outcome }) => outcome.kind === 'failed') ? 1 : 0;

async function tryHost(host: Host, path: readonly string[]): Promise<void> {
  const installation = await installPackage(host.package, 'latest', join(cache, host.name), path);
  if (installation.kind === 'unavailable') return skip(host, installation.reason);
  const { version, folder } = installation;
  const bin = join(folder, 'node_modules', '.bin');
  const recordIn = values.record === undefined ? null : resolve(values.record);
  const request: TryRequest = { hosts: [{ name: host.name, version, bin }], path, recordIn };
  const [program, ...before] = ISOLATED;
  const hooks = fileURLToPath(new URL('../typescript.js', import.meta.url));
  const inner = fileURLToPath(new URL('./try-hosts.ts', import.meta.url));
  const args = [...before, process.execPath, `--import=${hooks}`, inner, JSON.stringify(request)];
  const child = spawn(program, args, { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) report(JSON.parse(line));
  const [code] = await exited;
  if (code !== 0) throw new Error(`trying ${host.title} ended with code ${code}`);
}

function skip(host: Host, reason: string): void {
  for (const { carrier, configuredBy } of host.attempts) {
    report({ host: host.title, hostVersion: '', carrier, configuredBy, outcome: { kind: 'skipped', reason } });
  }
}

function report(result: Result): void {
  results.push(result);
  console.log(renderLine(result));
}
