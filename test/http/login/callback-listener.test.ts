import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { CallbackListener } from '../../../src/http/login/callback-listener.ts';
import { ownPort } from '../../support/own-port.ts';

test('a port that is taken is an error that says what to do', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const listener = new CallbackListener(new URL(`http://127.0.0.1:${port}/callback`));
  t.teardown(() => listener.close());
  await t.throwsAsync(listener.listen(), { message: /EADDRINUSE.*--oauth-callback/ });
});

test('answers with a page that loads nothing and keeps nothing, and never repeats what came', async (t) => {
  const listener = new CallbackListener(new URL('http://127.0.0.1:0/callback'));
  t.teardown(() => listener.close());
  const url = await listener.listen();
  listener.receive((parameters) => (parameters.has('code') ? 'done' : 'failed'));
  const done = await fetch(`${url}?code=secret-code`);
  t.is(done.status, 200);
  t.is(done.headers.get('cache-control'), 'no-store');
  t.is(done.headers.get('referrer-policy'), 'no-referrer');
  t.regex(done.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  t.false((await done.text()).includes('secret-code'));
  const failed = await fetch(`${url}?error=<script>`);
  t.is(failed.status, 400);
  t.false((await failed.text()).includes('script>'));
});

test('listens on this machine only, and not at all when it is closed', async (t) => {
  // What the system chooses may belong to somebody else a moment later.
  const listener = new CallbackListener(new URL(`http://localhost:${await ownPort()}/callback`));
  const url = await listener.listen();
  t.is(url.hostname, 'localhost');
  t.is(
    (await fetch(`http://127.0.0.1:${url.port}/callback`, { headers: { host: `localhost:${url.port}` } })).status,
    404,
  );
  listener.close();
  listener.close();
  await t.throwsAsync(fetch(`http://127.0.0.1:${url.port}/callback`));
});
