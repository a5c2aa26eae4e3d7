import test from 'ava';
import { startHttpFace } from '../support/http-face.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { waitFor } from '../support/wait-for.ts';
import { headersOf, modernCall } from './streamable-stateless/modern-posts.ts';

test('streams asked for behind another one on the same connection end with it', async (t) => {
  const face = await startHttpFace(t);
  const socket = (await RawSocket.connect(face.port)).read();
  for (let count = 0; count < 3; count += 1) socket.request('GET', '/sse', { Accept: 'text/event-stream' });
  await waitFor(() => face.sessions.size === 3, { message: 'three sessions' });
  socket.destroy();
  await waitFor(() => face.sessions.size === 0, { message: 'the end of all sessions' });
  t.true(face.server.connections.every(({ closedFor }) => closedFor !== undefined));
});

test('a call behind another one on the same connection is withdrawn when its client leaves', async (t) => {
  const face = await startHttpFace(t);
  const socket = (await RawSocket.connect(face.port)).read();
  for (const id of [1, 2]) {
    const message = modernCall(id);
    const headers = Object.entries(headersOf(message)).map(([name, value]) => [name, value ?? '']);
    socket.request('POST', '/mcp', Object.fromEntries(headers), JSON.stringify(message));
  }
  await waitFor(() => face.calls.size === 2, { message: 'two calls' });
  socket.destroy();
  await waitFor(() => face.calls.size === 0, { message: 'the end of both calls' });
  t.pass();
});
