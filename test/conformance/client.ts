/**
 * The client the conformance suite is shown: `client.ts <era> direct <url>` speaks Streamable HTTP with the official
 * SDK of that era, `client.ts <era> <options> <url>` speaks to `mcp-portage connect <options> <url>` over stdio with its
 * transport for that. What it does is the same; the scores are compared. The suite names the scenario in
 * MCP_CONFORMANCE_SCENARIO.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import type { ConnectClient, Route } from './clients/route.ts';
import { findScenario } from './clients/scenarios.ts';
import { createUser } from './clients/user.ts';

/** Each brings an SDK, and to load one takes longer than anything that is done with it. */
const ERAS: Readonly<Record<string, () => Promise<ConnectClient>>> = {
  legacy: async () => (await import('./clients/legacy.ts')).connectLegacy,
  modern: async () => (await import('./clients/modern.ts')).connectModern,
};

const [era = '', ...words] = process.argv.slice(2);
const url = words.pop() ?? '';
const loadEra = ERAS[era];
if (loadEra === undefined) throw new Error(`there is no client of the era "${era}"`);
const name = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const scenario = findScenario(name);
if (scenario === undefined) throw new Error(`this client does not know the scenario "${name}"`);

const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-conformance-client-'));
try {
  const connect = await loadEra();
  const client = await connect(routeTo(new URL(url)), scenario.answers ?? {});
  try {
    await scenario.run(client);
  } finally {
    await client.close();
  }
} finally {
  await rm(folder, { recursive: true });
}

function routeTo(target: URL): Route {
  if (words[0] === 'direct') return { kind: 'http', url: target };
  const [command, ...args] = BRIDGE_COMMAND;
  const { options, env } = createUser(name, folder);
  return { kind: 'stdio', command, args: [...args, 'connect', ...words, ...options, target.href], env };
}
