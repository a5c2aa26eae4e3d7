/**
 * The inner process, which has no network: tries hosts and prints each result as a line of JSON. argv[2] is the request.
 * `run.ts` starts it.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type Attempt, HOSTS, type Host } from './hosts.ts';
import type { Outcome, Result } from './results.ts';
import { createSurroundings } from './surroundings.ts';

export interface TryRequest {
  readonly hosts: readonly { readonly name: string; readonly version: string; readonly bin: string }[];
  /** Folders of programs for all of them. */
  readonly path: readonly string[];
  /** Where to write what the hosts print, for the tests of the readers; null: nowhere. */
  readonly recordIn: string | null;
}

const others = Object.values(networkInterfaces()).flatMap((addresses) =>
  addresses?.filter(({ internal }) => !internal),
);
if (others.length > 0) throw new Error('hosts are tried only where there is no network; see run.ts');

const request: TryRequest = JSON.parse(process.argv[2] ?? '');
for (const { name, version, bin } of request.hosts) {
  const host = HOSTS.find((candidate) => candidate.name === name);
  if (host === undefined) throw new Error(`there is no host ${name}`);
  for (const [index, attempt] of host.attempts.entries()) {
    const outcome = await outcomeOf(host, attempt, [bin, ...request.path], async (printed) => {
      if (request.recordIn === null) return;
      await mkdir(request.recordIn, { recursive: true });
      await writeFile(join(request.recordIn, `${name}-${version}-${index + 1}-${attempt.carrier}.txt`), printed);
    });
    const { carrier, configuredBy } = attempt;
    const result: Result = { host: host.title, hostVersion: version, carrier, configuredBy, outcome };
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
}

async function outcomeOf(
  host: Host,
  attempt: Attempt,
  path: readonly string[],
  record: (printed: string) => Promise<void>,
): Promise<Outcome> {
  if (attempt.kind === 'impossible') return { kind: 'skipped', reason: attempt.reason };
  const around = await createSurroundings(path, host.variables, attempt.access);
  try {
    const { stdout, stderr, end } = await attempt.run(around);
    const printed = `${stdout}\n${stderr}`;
    await record(printed);
    const { kind, words } = host.read(printed);
    if (kind === 'not-connected') {
      return { kind: 'failed', words: end.kind === 'timed-out' ? `no end within its time; ${words}` : words };
    }
    const client = await around.bridge.client();
    if (client === undefined) return { kind: 'failed', words: `it says "${words}", but the bridge saw no client` };
    if (client.transport !== attempt.address) {
      return { kind: 'failed', words: `it says "${words}", but the bridge saw it on ${client.transport}` };
    }
    return { kind: 'connected', words, client };
  } catch (error) {
    return { kind: 'failed', words: error instanceof Error ? error.message : String(error) };
  } finally {
    await around.close();
  }
}
