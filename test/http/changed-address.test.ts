import dns from 'node:dns';
import { createServer, type Server } from 'node:http';
import test from 'ava';
import { ownPort } from '../support/own-port.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

type Lookup = (name: string, options: { all?: boolean }, done: (...answer: unknown[]) => void) => void;

const NAME = 'moving.example';

// Others have one loopback address only, unless somebody gives them more.
const withTwoAddresses = process.platform === 'linux' ? test : test.skip;

async function serve(host: string, port: number): Promise<Server> {
  const server = createServer((_, response) => response.end(host));
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return server;
}

withTwoAddresses('a name that moves to another address is followed, without a restart', async (t) => {
  let address = '127.0.0.1';
  const original = dns.lookup;
  const resolve: Lookup = (name, options, done) => {
    if (name !== NAME) (original as Lookup)(name, options, done);
    else if (options.all) done(null, [{ address, family: 4 }]);
    else done(null, address, 4);
  };
  Object.assign(dns, { lookup: resolve });
  t.teardown(() => Object.assign(dns, { lookup: original }));

  const port = await ownPort();
  const before = await serve('127.0.0.1', port);
  const client = createClient();
  closeAfter(t, client);
  const url = new URL(`http://${NAME}:${port}/mcp`);
  t.is((await new RecordedCall(client, url).finished()).body, '127.0.0.1');

  before.closeAllConnections();
  await new Promise((resolve) => before.close(resolve));
  const after = await serve('127.0.0.2', port);
  t.teardown(() => after.closeAllConnections());
  t.teardown(() => after.close());
  t.is((await new RecordedCall(client, url).finished()).failure?.code, 'ERR_UPSTREAM_CONNECT');
  address = '127.0.0.2';
  t.is((await new RecordedCall(client, url).finished()).body, '127.0.0.2');
});
