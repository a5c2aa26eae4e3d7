/** A newcomer's second command, while the bridge of the first one still starts its server. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { BRIDGE_COMMAND, startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';

const run = promisify(execFile);
/** Longer than the probe waits for an ordinary server. */
const START_MS = 14_000;
const SERVER = new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url);

test('a probe waits for a bridge that is starting its server, which its readiness check says', async (t) => {
  t.timeout(180_000);
  const slow = `setTimeout(() => import(${JSON.stringify(SERVER.href)}), ${START_MS})`;
  const bridge = await startBridge(['--', process.execPath, '-e', slow, 'stdio']);
  t.teardown(() => bridge.stop());
  const [program, ...args] = BRIDGE_COMMAND;
  const probing = run(program, [...args, 'probe', '--json', '--timeout', '12s', bridge.url.href]);
  const readiness = async () => (await fetch(new URL('/readyz', bridge.url))).text();
  await waitFor(async () => (await readiness()) === '{"status":"ready","server":"starting"}');
  const { stdout } = await probing;
  const { offers, problems } = JSON.parse(stdout);
  t.deepEqual(problems, []);
  const working = offers.filter(({ works }: { works: boolean }) => works);
  t.deepEqual(
    working.map(({ transport, era }: { transport: string; era: string }) => `${transport} ${era}`),
    ['streamable-http modern', 'streamable-http legacy', 'http-sse legacy'],
  );
});
