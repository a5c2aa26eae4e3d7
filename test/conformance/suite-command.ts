import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

const NAME = '@modelcontextprotocol/conformance';
const VERSION = '0.2.0-alpha.12';
/** The suite needs Node 22; on an older one, a newer comes along as a package. */
const SUITE_NODE = 'node@24';
const SUITE_NODE_MAJOR = 22;

/** What starts the suite: Node, and the script that it is given. */
export type SuiteCommand = readonly [node: string, script: string];

/**
 * Has npx fetch the suite, once, and finds out what it would start: to go through npx each time would take a second for
 * each of some hundred runs. Rejects when it cannot be had.
 */
export async function findSuite(): Promise<SuiteCommand> {
  const ownNode = Number.parseInt(process.versions.node, 10) >= SUITE_NODE_MAJOR;
  const packages = ['-p', `${NAME}@${VERSION}`, ...(ownNode ? [] : ['-p', SUITE_NODE])];
  const script = 'console.log(JSON.stringify([process.execPath, process.env.PATH ?? process.env.Path]))';
  const output = await runNpx(['-y', ...packages, '--', 'node', '-e', script]);
  const found = /^\[.*\]$/m.exec(output);
  if (found === null) throw new Error(`npx could not fetch the conformance suite; it said:\n${output}`);
  const [node, path]: [string, string] = JSON.parse(found[0]);
  for (const folder of path.split(delimiter)) {
    const home = join(dirname(folder), ...NAME.split('/'));
    const bin = readBin(home);
    if (bin !== undefined) return [node, join(home, bin)];
  }
  throw new Error('npx has fetched the conformance suite, but it is nowhere on the path');
}

function readBin(home: string): string | undefined {
  try {
    const { bin }: { readonly bin: { readonly conformance: string } } = JSON.parse(
      readFileSync(join(home, 'package.json'), 'utf8'),
    );
    return bin.conformance;
  } catch {
    return undefined;
  }
}

async function runNpx(args: readonly string[]): Promise<string> {
  const child = spawn('npx', args, { stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(child, 'close');
  return Buffer.concat(chunks).toString();
}
