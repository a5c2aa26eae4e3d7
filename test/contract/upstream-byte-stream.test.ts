import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { StreamAddress } from '../../src/config/server.ts';
import { asSessionDialer } from '../../src/upstream/connection.ts';
import { type InetdOptions, startInetd } from '../support/inetd.ts';
import { serverProgram } from '../support/server-program.ts';
import { dialByteStream } from '../upstream/byte-stream/dial.ts';
import { type ContractServer, testUpstreamContract } from './upstream-contract.ts';

const SERVER = [process.execPath, serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url))];

async function start(options: InetdOptions, addressOf: (port: number) => StreamAddress): Promise<ContractServer> {
  const inetd = await startInetd(SERVER, options);
  const dialer = asSessionDialer(dialByteStream(addressOf(inetd.port)).dialer);
  return {
    dialer,
    kill: () => inetd.kill(),
    close: async () => {
      await dialer.close();
      await inetd.stop();
    },
  };
}

testUpstreamContract(test, {
  name: 'a byte stream over TCP',
  start: () => start({}, (port) => ({ kind: 'tcp', host: '127.0.0.1', port, tls: 'off' })),
  deathEndsSession: true,
});

if (process.platform !== 'win32') {
  testUpstreamContract(test, {
    name: 'a byte stream on a Unix socket',
    async start() {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
      const path = join(folder, 'mcp.sock');
      const server = await start({ path }, () => ({ kind: 'socket', path }));
      const close = () => server.close().finally(() => rm(folder, { recursive: true }));
      return { ...server, close };
    },
    deathEndsSession: true,
  });
}
