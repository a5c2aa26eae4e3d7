/** Servers that frame messages as the Language Server Protocol does, for clients of both eras of the built program. */
import test, { type ExecutionContext } from 'ava';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { INITIALIZE, startConnect, stub } from './stdio-program.ts';

async function serve(t: ExecutionContext, ...args: readonly string[]): Promise<number> {
  const bridge = await startBridge(args);
  t.teardown(() => bridge.stop());
  return Number(bridge.url.port);
}

async function greet(port: number): Promise<string> {
  const body = JSON.stringify(initialize());
  return (await callHttp({ port, method: 'POST', headers: POST_HEADERS, body })).text();
}

const NAMED = /writes its messages behind Content-Length headers, as the Language Server Protocol does/;
const POSSIBLE = /may also wait for a Content-Length header before each message/;

test('clients of both eras of serve are told that a server writes Content-Length headers', async (t) => {
  const port = await serve(t, ...stub('frames-by-length', 'lines'));
  const list = modern(1, 'tools/list', {});
  for (const said of [await greet(port), await (await postModern({ port }, list)).text()]) t.regex(said, NAMED);
});

test('a client of connect is told that a server writes Content-Length headers', async (t) => {
  const client = startConnect(t, stub('frames-by-length', 'lines'));
  client.send(INITIALIZE);
  const { error } = (await client.answerTo(INITIALIZE.id)) as { error: { message: string } };
  t.regex(error.message, NAMED);
});

for (const isolation of ['session', 'shared']) {
  test(`where a server of --isolation ${isolation} reads only messages behind Content-Length headers, that is named as a possible reason`, async (t) => {
    const port = await serve(
      t,
      '--isolation',
      isolation,
      '--request-timeout',
      '1s',
      ...stub('frames-by-length', 'frames'),
    );
    t.regex(await greet(port), POSSIBLE);
  });
}
