import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { listHeaders } from '../../../src/http/client/client.ts';
import type { HttpRequest } from '../../../src/http/client/http-call.ts';
import { listen } from '../../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from '../recorded-call.ts';

/** What a request says in its head, each header as often as it came. */
async function headOf(
  t: ExecutionContext,
  configured: readonly (readonly [string, string])[],
  request: Partial<HttpRequest>,
) {
  const raw: string[] = [];
  const server = createServer((incoming, response) => {
    raw.push(...incoming.rawHeaders);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = createClient({ headers: new Map(configured) });
  closeAfter(t, client, server);
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const { failure } = await new RecordedCall(client, url, request).finished();
  t.is(failure, undefined);
  const of = (name: string) => raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
  return { of, host: url.host };
}

test('a request says once where it goes and how long its body is', async (t) => {
  const { of, host } = await headOf(t, [], {
    body: Buffer.from('"ü"'),
    headers: { 'Content-Type': 'application/json' },
  });
  t.deepEqual(of('host'), [host]);
  t.deepEqual(of('content-length'), ['4']);
  t.deepEqual(of('content-type'), ['application/json']);
  t.deepEqual(of('connection'), ['keep-alive']);
  t.deepEqual(of('transfer-encoding'), []);
});

test('a request without a body says nothing of one', async (t) => {
  const { of, host } = await headOf(t, [], { method: 'GET', body: undefined });
  t.deepEqual(of('host'), [host]);
  t.deepEqual([...of('content-length'), ...of('transfer-encoding')], []);
});

test('a configured Host takes the place of that of the URL', async (t) => {
  t.deepEqual((await headOf(t, [['host', 'inner.example']], {})).of('host'), ['inner.example']);
});

test('a header of the transport wins over a configured one, however that is spelled', async (t) => {
  const { of } = await headOf(t, [['cache-control', 'max-age=9']], { headers: { 'Cache-Control': 'no-store' } });
  t.deepEqual(of('cache-control'), ['no-store']);
});

test('a header that cannot be sent fails its request, and nothing else', async (t) => {
  const server = await listen((_incoming, response) => void response.end());
  const client = createClient();
  closeAfter(t, client, server);
  const { failure } = await new RecordedCall(client, server.url, { headers: { 'X-Broken': 'a\nb' } }).finished();
  t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
  t.is((await new RecordedCall(client, server.url).finished()).failure, undefined);
});

test('names and values stand in turn, and of names that differ in case alone the last counts', (t) => {
  t.deepEqual(listHeaders({ 'x-a': '1', 'X-B': '2', 'X-A': '3' }), ['X-A', '3', 'X-B', '2']);
});
