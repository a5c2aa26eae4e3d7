/** HTTP+SSE says goodbye: the built program, and a client of the official SDK. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import test, { type ExecutionContext } from 'ava';
import { startBridge } from '../support/bridge.ts';
import { ENVIRONMENT, NODE, serveFile } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';

async function start(t: ExecutionContext, args: readonly string[]) {
  const bridge = await startBridge([...args, '--', NODE, ENVIRONMENT]);
  t.teardown(() => bridge.stop());
  const said = (pattern: RegExp) => bridge.logs.filter(({ msg = '' }) => pattern.test(msg));
  return { bridge, said };
}

async function connect(t: ExecutionContext, url: URL) {
  const client = new Client({ name: 'cursor', version: '0.42' });
  t.teardown(() => client.close());
  await client.connect(new SSEClientTransport(url) as Parameters<Client['connect']>[0]);
  return client;
}

test('an old client is served until the date, and the log names it once', async (t) => {
  const { bridge, said } = await start(t, ['--sunset', '2999-12-31', '--usage']);
  for (const _ of [1, 2]) {
    const client = await connect(t, bridge.sseUrl);
    await client.listTools();
    await client.close();
  }
  await waitFor(() => said(/^cursor 0\.42 uses .* by HTTP\+SSE, which ends here \(2999-12-31\)/).length > 0);
  t.is(said(/which ends here/).length, 1);
  const status = (await (await fetch(new URL('/status.json', bridge.url))).json()) as {
    readonly servers: readonly object[];
    readonly usage: { readonly verdicts: readonly { readonly text: string }[] };
  };
  t.like(status.servers[0], { sseSunset: '2999-12-31' });
  t.regex(status.usage.verdicts[0]?.text ?? '', /not yet; announced to end on 2999-12-31$/);
});

/** A program that announces its end this soon, and what it answers for now; undefined: it was over before it listened. */
async function startShortly(t: ExecutionContext, leadMs: number) {
  const at = new Date(Date.now() + leadMs).toISOString().replace(/\.\d+Z$/, 'Z');
  const { bridge } = await start(t, ['--sunset', at]);
  const ask = async () => {
    const answer = await fetch(bridge.sseUrl, { headers: { accept: 'text/event-stream' } });
    if (answer.status === 410) return answer.text();
    await answer.body?.cancel();
    return undefined;
  };
  return (await ask()) === undefined ? { at, bridge, ask } : undefined;
}

test('the date passes while the program runs', async (t) => {
  // How long a start takes is up to the machine.
  const found = (await startShortly(t, 4000)) ?? (await startShortly(t, 15_000));
  if (found === undefined) return t.fail('it was never served');
  const refusal = await waitFor(found.ask, { timeoutMs: 30_000 });
  const expected = `HTTP+SSE has ended here (${found.at}); use Streamable HTTP, at ${found.bridge.url.href}`;
  t.true(refusal.includes(expected), refusal);
});

test('a date in the past ends it at once, unless it is told to serve', async (t) => {
  const over = await start(t, ['--sunset', '2026-01-31']);
  await t.throwsAsync(connect(t, over.bridge.sseUrl), { message: /410/ });
  await waitFor(() => over.said(/still come to .* and are refused: it has ended \(2026-01-31\)/).length > 0);
  const served = await start(t, ['--sunset', '2026-01-31', '--after-sunset', 'serve']);
  await (await connect(t, served.bridge.sseUrl)).listTools();
  await waitFor(() => served.said(/which should have ended here \(2026-01-31\)/).length > 0);
  t.pass();
});

test('a configuration file says it at its top, for all its servers', async (t) => {
  const servers = { one: { command: NODE, args: [ENVIRONMENT] }, two: { command: NODE, args: [ENVIRONMENT] } };
  const folder = await createConfigFolder(t);
  const file = await folder.write('servers.json', { mcpServers: servers, portage: { sunset: '2026-01-31' } });
  const bridge = await serveFile(t, file);
  for (const name of Object.keys(servers)) {
    const answer = await fetch(new URL(`/${name}/sse`, bridge.url), { headers: { accept: 'text/event-stream' } });
    t.is(answer.status, 410);
    t.regex(await answer.text(), new RegExp(`use Streamable HTTP, at http://127\\.0\\.0\\.1:\\d+/${name}/mcp`));
  }
});

test('where HTTP+SSE is switched off at once its paths say so', async (t) => {
  const { bridge } = await start(t, ['--no-sse']);
  for (const path of ['/sse', '/messages?sessionId=x']) {
    const answer = await fetch(new URL(path, bridge.url), { headers: { accept: 'text/event-stream' } });
    t.is(answer.status, 404);
    t.true((await answer.text()).includes(`switched off here (--no-sse); Streamable HTTP is at ${bridge.url.href}`));
  }
});
