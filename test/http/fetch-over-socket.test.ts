import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { fetchOverSocket } from '../../src/http/client/socket-agent.ts';
import { SocketUrl } from '../../src/http/socket-addresses.ts';

/** A server on a socket that answers every request with these bytes. */
async function answering(t: ExecutionContext, answer: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
  const path = join(folder, 'status.sock');
  const server = createServer((socket: Socket) => socket.once('data', () => socket.end(answer)));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  return path;
}

function ask(socketPath: string): Promise<Response> {
  return fetchOverSocket(new SocketUrl('http://localhost/status.json', socketPath), {
    headers: new Headers(),
    signal: undefined,
  });
}

test('hands over what a server on a socket answers', async (t) => {
  const response = await ask(await answering(t, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\n{}'));
  t.is(response.status, 200);
  t.is(response.headers.get('x-a'), '1');
  t.is(await response.text(), '{}');
});

for (const status of [204, 205, 304]) {
  test(`an answer with ${status} has no body`, async (t) => {
    const response = await ask(await answering(t, `HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`));
    t.is(response.status, status);
    t.is(response.body, null);
  });
}

test('a status that HTTP does not have rejects', async (t) => {
  await t.throwsAsync(ask(await answering(t, 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n')), {
    message: /999|status/,
  });
});
