import type { ServerResponse } from 'node:http';
import {
  brotliCompressSync,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
} from 'node:zlib';
import test from 'ava';
import { ControlClient } from '../../../src/http/client/control-client.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { answerJson, listen } from '../../fixtures/http-servers/listen.ts';
import { event, listenScripted, notification, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient } from '../../upstream/connect.ts';
import { dialStreamable } from '../../upstream/remote-dialers.ts';
import { closeAfter, createClient, RecordedCall } from '../recorded-call.ts';

const packings = [
  { name: 'gzip', encoding: 'gzip', pack: gzipSync, createPacking: createGzip },
  { name: 'x-gzip', encoding: 'X-GZIP', pack: gzipSync, createPacking: createGzip },
  { name: 'br', encoding: 'br', pack: brotliCompressSync, createPacking: createBrotliCompress },
  { name: 'deflate', encoding: 'deflate', pack: deflateSync, createPacking: createDeflate },
  { name: 'deflate without its header', encoding: 'deflate', pack: deflateRawSync, createPacking: createDeflateRaw },
];

const LONG = JSON.stringify({ text: 'ä€😀'.repeat(50_000) });

for (const { name, encoding, pack, createPacking } of packings) {
  test(`an answer packed with ${name}, although nobody asked for that, is read`, async (t) => {
    const server = await listen(({ path, headers }, response) => {
      t.is(headers['accept-encoding'], 'identity');
      response.writeHead(path === '/401' ? 401 : 200, { 'Content-Encoding': encoding });
      response.end(path === '/empty' ? undefined : pack(Buffer.from(LONG)));
    });
    const client = createClient();
    closeAfter(t, client, server);
    for (const path of ['/', '/401']) {
      const { body, failure } = await new RecordedCall(client, new URL(path, server.url)).finished();
      t.deepEqual([failure, body === LONG], [undefined, true]);
    }
    const { body, failure } = await new RecordedCall(client, new URL('/empty', server.url)).finished();
    t.deepEqual([failure, body], [undefined, '']);
    t.is(server.open.size, 1, 'the connection is kept');
  });

  test(`events packed with ${name} arrive one by one, and what is cut off is an error`, async (t) => {
    let response: ServerResponse | undefined;
    const server = await listen((_, answering) => {
      response = answering.writeHead(200, { 'Content-Encoding': encoding });
    });
    const client = createClient();
    closeAfter(t, client, server);
    const call = new RecordedCall(client, server.url);
    const packing = createPacking();
    packing.pipe(await waitFor(() => response));
    for (const text of ['one', 'two', 'three']) {
      packing.write(text);
      packing.flush();
      await waitFor(() => call.body.endsWith(text));
    }
    server.cut();
    await call.finished();
    t.is(call.failure?.code, 'ERR_UPSTREAM_CLOSED');
  });
}

test('an answer that is not packed as it says, or packed in another way, is an error that says so', async (t) => {
  const server = await listen(({ path }, response) => {
    response.writeHead(200, { 'Content-Encoding': path.slice(1) }).end('<html>'.repeat(200));
  });
  const client = createClient();
  closeAfter(t, client, server);
  const said = async (encoding: string): Promise<string | undefined> => {
    const { failure } = await new RecordedCall(client, new URL(`/${encoding}`, server.url)).finished();
    t.is(failure?.code, 'ERR_UPSTREAM_HTTP');
    return failure?.message;
  };
  for (const encoding of ['gzip', 'br', 'deflate']) {
    t.regex((await said(encoding)) ?? '', /sent a compressed answer that cannot be decompressed \(\w+\)\./);
  }
  t.regex((await said('zstd')) ?? '', /sent its answer compressed \(zstd\), although that was not asked for/);
});

test('a packed answer waits while it is not read', async (t) => {
  const bytes = Buffer.alloc(4 * 1024 * 1024, 'x');
  const server = await listen((_, response) => {
    response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(bytes));
  });
  const client = createClient();
  closeAfter(t, client, server);
  const call = new RecordedCall(client, server.url);
  call.call.pause();
  await waitFor(() => call.head);
  await fetch(server.url).then((response) => response.arrayBuffer());
  t.deepEqual(call.chunks, []);
  call.call.resume();
  await call.finished();
  t.is(Buffer.concat(call.chunks).length, bytes.length);
});

for (const { name, encoding, createPacking } of packings.filter(({ encoding }) => encoding !== 'X-GZIP')) {
  test(`an answer packed with ${name} that unpacks to too much fails its call at the limit`, async (t) => {
    let packed = 0;
    const server = await listenScripted({
      'tools/call': (_, response) => {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': encoding });
        const packing = createPacking();
        packing.pipe(response);
        const more = (): void => {
          while (!response.destroyed && packing.write(Buffer.alloc(1024 * 1024, ' '))) packed += 1;
        };
        packing.on('drain', more);
        response.on('close', () => packing.destroy());
        more();
      },
    });
    const client = await connectClient(t, server, dialStreamable(server.url, { maxMessageBytes: 1_000_000 }));
    const { error } = await client.request('tools/call', { name: 'x' });
    t.regex(error?.message ?? '', /up to 1000000 are allowed/);
    await waitFor(() => server.open.size <= 1);
    t.true(packed < 2000, `${packed} MiB`);
    t.deepEqual((await client.request('tools/list')).result, {});
  });

  test(`calls and the event stream of a session may be packed with ${name}`, async (t) => {
    const server = await listenScripted({
      GET: (_, response) => {
        const packing = createPacking();
        packing.pipe(response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': encoding }));
        packing.write(event(notification('notifications/x')));
        packing.flush();
      },
      'tools/call': (asked, response) => {
        const packing = createPacking();
        packing.pipe(response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': encoding }));
        packing.end(event(resultOf(asked, 'ok')));
      },
    });
    const client = await connectClient(t, server, dialStreamable(server.url));
    await waitFor(() => client.notifications('notifications/x').length === 1);
    t.is(await client.call('x'), 'ok');
  });
}

test('documents may be packed, too, and their limit is that of what they unpack to', async (t) => {
  const server = await listen(({ path }, response) => {
    if (path === '/mcp') return answerJson(response, {});
    response.writeHead(200, { 'Content-Encoding': 'gzip' });
    response.end(gzipSync(path === '/big' ? Buffer.alloc(2 * 1024 * 1024) : '{"issuer":"x"}'));
  });
  const http = createClient();
  closeAfter(t, http, server);
  const control = new ControlClient(http);
  const asked = { method: 'GET', headers: {}, cookies: new SessionCookies(), timeoutMs: 60_000 } as const;
  const { body } = await control.request({ ...asked, url: new URL('/small', server.url) });
  t.is(body.toString(), '{"issuer":"x"}');
  const big = control.request({ ...asked, url: new URL('/big', server.url) });
  t.like(await t.throwsAsync(big), { code: 'ERR_UPSTREAM_HTTP' });
});
