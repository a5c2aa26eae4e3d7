import test from 'ava';
import { SOCKET_LIMITS } from '../../../src/downstream/listener/http-server.ts';
import { STALL_MS } from '../../../src/http/reading-watch.ts';
import { callHttp } from '../../support/http-call.ts';
import { seriousLines, startHttpHarness } from '../../support/http-harness.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Node itself shall not let anybody go: it would, for a head that was read in part only. */
const PATIENT = { ...SOCKET_LIMITS, headersTimeoutMs: 10 * 60_000, requestTimeoutMs: 10 * 60_000 };

test('an unknown client that asks and asks and reads no answer is disconnected, and others are served', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: PATIENT });
  const socket = await RawSocket.connect(harness.port);
  const request = 'GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n';
  // More answers than the operating systems of both sides take, which may be forty megabytes.
  socket.write(request.repeat(400_000));
  t.is((await callHttp({ port: harness.port, path: '/healthz' })).status, 200);
  const isLetGo = (): boolean => {
    harness.clock.advance(STALL_MS);
    // Whoever does not read learns of the end of a connection only by writing.
    if (!socket.isClosed) socket.write(request);
    return socket.isClosed;
  };
  await waitFor(isLetGo, { message: 'the end of the connection' });
  t.deepEqual(seriousLines(harness), []);
});

test('who reads its answers keeps its connection', async (t) => {
  const harness = await startHttpHarness(t, { socketLimits: PATIENT });
  const socket = (await RawSocket.connect(harness.port)).read();
  t.teardown(() => socket.destroy());
  for (let asked = 1; asked <= 3; asked += 1) {
    socket.request('GET', '/healthz', {});
    await waitFor(() => socket.received.split('"ok"').length > asked, { message: 'an answer' });
    harness.clock.advance(3 * STALL_MS);
  }
  t.false(socket.isClosed);
});
