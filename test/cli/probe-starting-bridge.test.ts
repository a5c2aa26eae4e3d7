/** A newcomer's second command, while the bridge of the first one still starts its server. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { BRIDGE_COMMAND, startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';

const run = promisify(execFile);
/** Longer than the probe waits for an ordinary server. */
const START_MS = 14_000;
const SERVER = new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url);

/** The offers that work, and the problems, as a probe of this bridge reports them. */
async function probe(url: URL): Promise<{ readonly problems: readonly string[]; readonly working: readonly string[] }> {
  const [program, ...args] = BRIDGE_COMMAND;
  const { stdout } = await run(program, [...args, 'probe', '--json', '--timeout', '12s', url.href]);
  const { offers, problems } = JSON.parse(stdout) as Report;
  const working = offers.filter(({ works }) => works).map(({ transport, era }) => `${transport} ${era}`);
  return { problems, working };
}

interface Report {
  readonly offers: readonly { readonly works: boolean; readonly transport: string; readonly era: string }[];
  readonly problems: readonly string[];
}

const EVERYTHING_WORKS = ['streamable-http modern', 'streamable-http legacy', 'http-sse legacy'];

test('a probe waits for a bridge that is starting its server, which its readiness check says', async (t) => {
  t.timeout(180_000);
  const slow = `setTimeout(() => import(${JSON.stringify(SERVER.href)}), ${START_MS})`;
  const bridge = await startBridge(['--', process.execPath, '-e', slow, 'stdio']);
  t.teardown(() => bridge.stop());
  const probing = probe(bridge.url);
  const readiness = async () => (await fetch(new URL('/readyz', bridge.url))).text();
  await waitFor(async () => (await readiness()) === '{"status":"ready","server":"starting"}');
  t.deepEqual(await probing, { problems: [], working: EVERYTHING_WORKS });
});

test('a probe waits for a bridge whose server has answered, but is started slowly for each client', async (t) => {
  t.timeout(180_000);
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const first = JSON.stringify(join(folder, 'first'));
  // The first process finds out what the server speaks, and modern clients use it.
  const delayMs = `(() => { try { fs.writeFileSync(${first}, '', { flag: 'wx' }); return 0 } catch { return ${START_MS} } })()`;
  const slow = `setTimeout(() => import(${JSON.stringify(SERVER.href)}), ${delayMs})`;
  const bridge = await startBridge(['--', process.execPath, '-e', slow, 'stdio']);
  t.teardown(() => bridge.stop());
  t.deepEqual(await probe(bridge.url), { problems: [], working: EVERYTHING_WORKS });
});
