/** A folder of programs for the PATH: the bridge that is built here, and an `npx` that starts what is installed here at once. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { BRIDGE_COMMAND } from './bridge.ts';
import { EVERYTHING, FILESYSTEM } from './config-bridge.ts';

/** What npx itself takes a second of processor time to find. */
const INSTALLED: Readonly<Record<string, readonly string[]>> = {
  'mcp-portage': BRIDGE_COMMAND,
  '@modelcontextprotocol/server-everything': [process.execPath, EVERYTHING],
  '@modelcontextprotocol/server-filesystem': [process.execPath, FILESYSTEM],
};

/**
 * The variables with which a process finds these programs first. They are shell scripts: Windows gets none of them, and uses its
 * own npx.
 */
export async function installedPrograms(t: ExecutionContext): Promise<Readonly<Record<string, string>>> {
  if (process.platform === 'win32') return {};
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-programs-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const cases = Object.entries(INSTALLED).map(([name, words]) => `${name}) shift 2; exec ${quoted(words)} "$@";;`);
  const programs = {
    'mcp-portage': `exec ${quoted(BRIDGE_COMMAND)} "$@"`,
    npx: ['case $2 in', ...cases, 'esac', `PATH=\${PATH#*${delimiter}}`, 'exec npx "$@"'].join('\n'),
  };
  for (const [name, text] of Object.entries(programs)) {
    const file = join(folder, name);
    await writeFile(file, `#!/bin/sh\n${text}\n`);
    await chmod(file, 0o755);
  }
  return { PATH: `${folder}${delimiter}${process.env.PATH}` };
}

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');
