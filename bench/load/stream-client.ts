/** A client on a byte stream: what it says are lines, as on pipes. */
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import type { Client, Identity } from './client.ts';
import { openStdioClient } from './stdio-client.ts';

export async function openStreamClient(port: number, identity: Identity): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const stdin = new Writable({
    write: (bytes: Buffer, _, done) => {
      // The next call changes the bytes of this one, and the system may not have taken them yet.
      socket.write(Buffer.from(bytes));
      done();
    },
    final: (done) => socket.end(done),
  });
  socket.on('error', (error) => stdin.destroy(error));
  return openStdioClient({ stdin, stdout: socket }, identity);
}
