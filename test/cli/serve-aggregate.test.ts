/** The address for all servers of a file, in the built program. */
import test from 'ava';
import { fixture, NODE, serveFile } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ECHO = { command: NODE, args: [fixture('echo')] };
const TWO = { mcpServers: { one: ECHO, two: ECHO } };

interface Listed {
  readonly servers: readonly { readonly name: string; readonly url: string; readonly kind?: string }[];
}

async function listOf(base: URL, path = '/'): Promise<Listed['servers']> {
  const response = await fetch(new URL(path, base), { headers: { Accept: 'application/json' } });
  return ((await response.json()) as Listed).servers;
}

test('serve --config FILE --aggregate has one address for all servers, which lists and the status name', async (t) => {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', TWO);
  const bridge = await serveFile(t, file, ['--aggregate', '--metrics']);
  const { origin } = bridge.url;
  t.is(bridge.url.pathname, '/mcp');
  t.deepEqual(
    (await listOf(bridge.url)).map(({ name, url }) => [name, url]),
    [
      ['aggregate', `${origin}/mcp`],
      ['one', `${origin}/one/mcp`],
      ['two', `${origin}/two/mcp`],
    ],
  );
  const [aggregate, one] = await listOf(bridge.url, '/status.json');
  t.is(aggregate?.kind, 'aggregate');
  t.is(one?.kind, 'command');
  const metrics = await (await fetch(new URL('/metrics', bridge.url))).text();
  t.regex(metrics, /^mcp_portage_server_up\{server="aggregate",kind="aggregate"\} 1$/m);
  t.is((await fetch(new URL('/readyz', bridge.url))).status, 200);
});

test('a change of the file adds and removes the aggregate, and its members', async (t) => {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', TWO);
  const bridge = await serveFile(t, file);
  const namesOf = async () => (await listOf(bridge.url)).map(({ name }) => name);
  t.deepEqual(await namesOf(), ['one', 'two']);
  await folder.write('mcp.json', { ...TWO, portage: { aggregate: true } });
  bridge.kill('SIGHUP');
  await waitFor(async () => (await namesOf()).includes('aggregate'));
  await folder.write('mcp.json', TWO);
  bridge.kill('SIGHUP');
  await waitFor(async () => !(await namesOf()).includes('aggregate'));
  t.deepEqual(await namesOf(), ['one', 'two']);
});
