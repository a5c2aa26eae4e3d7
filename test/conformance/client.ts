/**
 * The client the conformance suite is shown: `client.ts <era> direct <url>` speaks Streamable HTTP with the official
 * SDK of that era, `client.ts <era> <options> <url>` speaks to `mcp-portage connect <options> <url>` over stdio with its
 * transport for that. What it does is the same; the scores are compared. The suite names the scenario in
 * MCP_CONFORMANCE_SCENARIO.
 */
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { connectLegacy } from './clients/legacy.ts';
import { connectModern } from './clients/modern.ts';
import type { ConnectClient, Route } from './clients/route.ts';
import { SCENARIOS } from './clients/scenarios.ts';

const ERAS: Readonly<Record<string, ConnectClient>> = { legacy: connectLegacy, modern: connectModern };

const [era = '', ...words] = process.argv.slice(2);
const url = words.pop() ?? '';
const connect = ERAS[era];
if (connect === undefined) throw new Error(`there is no client of the era "${era}"`);
const name = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const scenario = SCENARIOS[name];
if (scenario === undefined) throw new Error(`this client does not know the scenario "${name}"`);

const client = await connect(routeTo(new URL(url)), scenario.answers ?? {});
try {
  await scenario.run(client);
} finally {
  await client.close();
}

function routeTo(target: URL): Route {
  if (words[0] === 'direct') return { kind: 'http', url: target };
  const [command, ...args] = BRIDGE_COMMAND;
  return { kind: 'stdio', command, args: [...args, 'connect', ...words, target.href] };
}
