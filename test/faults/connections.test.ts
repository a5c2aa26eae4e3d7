/**
 * What can happen on a connection that both ends keep, between the bridge and a server: each carries one session, which
 * ends with it. Through the built bridge, with clients over HTTP. Needs a current build.
 */
import test, { type ExecutionContext } from 'ava';
import { waitFor } from '../support/wait-for.ts';
import { connectClient } from './fault-clients.ts';
import { rssMiBOf } from './faulty-bridge.ts';
import {
  CONNECTION_NAMES,
  CONNECTIONS,
  type Connected,
  type ConnectionCall,
  echo,
  resultOf,
  startConnected,
} from './faulty-connections.ts';

/** Stands in the answers that the network damages, and nowhere else. */
const MARK = '€';
const MIB = 1024 * 1024;
const BOUND_MIB = 150;

/** Once for each connection, however much it is. */
const NOISE_OF_LINES = 'warn the server sends something that is not MCP; skipping it (--log-level debug shows it)';

const errorOf = (reason: string) => ({ code: -32603, data: { bridge: { reason } } });

async function isOver(t: ExecutionContext, { victim }: Connected): Promise<void> {
  t.is((await victim.call('echo', 'x')).status, 404, 'the client is told to open a new session');
}

const hasLost = ({ victim }: Connected) =>
  waitFor(async () => (await victim.call('echo', 'x')).status === 404, { message: 'the loss to be known' });

const grewLess = (t: ExecutionContext, { bridge }: Connected): (() => void) => {
  const before = rssMiBOf(bridge.pid);
  return () => {
    const grown = rssMiBOf(bridge.pid) - before;
    t.true(grown < BOUND_MIB, `${grown} MiB more`);
  };
};

for (const name of CONNECTION_NAMES) {
  const { title } = CONNECTIONS[name];

  for (const by of ['end', 'reset'] as const) {
    test.serial(`${title}: network cuts a message in two (${by}): one error, and the session is over`, async (t) => {
      const connected = await startConnected(t, name);
      connected.network.fault = { kind: 'truncate', marker: MARK, keep: 1, by };
      t.like(
        (await connected.victim.call('echo', `some text, ${MARK} and more`)).error,
        errorOf('ERR_UPSTREAM_CLOSED'),
      );
      await isOver(t, connected);
      // Half a line is what is left of a line.
      await connected.recovered({ log: ['warn ERR_UPSTREAM_CLOSED', ...(name === 'stream' ? [NOISE_OF_LINES] : [])] });
    });
  }

  test.serial(`${title}: network resets what is there and what comes: plain errors until it is back`, async (t) => {
    const connected = await startConnected(t, name);
    const { network, bridge } = connected;
    network.fault = { kind: 'refuse' };
    await network.reset();
    await hasLost(connected);
    await t.throwsAsync(connectClient(bridge, 'legacy'), { message: /"reason":"ERR_UPSTREAM_/ });
    network.fault = { kind: 'none' };
    const anew = await connectClient(bridge, 'legacy');
    t.is((await anew.call('echo', 'welcome')).text, 'welcome');
    await anew.leave();
    // Those that were there. A byte stream is there before anything is said on it, so it is lost, too.
    const losses = name === 'stream' ? 3 : 2;
    await connected.recovered({ witness: 'is over', log: Array(losses).fill('warn ERR_UPSTREAM_CLOSED') });
  });

  test.serial(`${title}: a server that vanishes without a word is found out, and its session is over`, async (t) => {
    // Pings of WebSocket are sent within the limit on silence.
    const options = name === 'webSocket' ? ['--idle-timeout', '3s'] : ['--keep-alive', '1s'];
    const connected = await startConnected(t, name, options);
    const { bridge, network, server, victim, recovered } = connected;
    t.is((await victim.call('echo', 'one')).text, 'one');
    // A server that has never answered a ping may be one that answers none.
    if (name === 'stream') await waitFor(() => server.pings > 1, { message: 'two pings' });
    network.fault = { kind: 'silence' };
    t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_TIMEOUT'));
    await isOver(t, connected);
    // The session of the witness is pinged at other times, and is to be given up for its silence, too.
    const givenUp = () => bridge.logs.filter(({ code, level }) => code === 'ERR_UPSTREAM_TIMEOUT' && level === 'warn');
    await waitFor(() => givenUp().length >= 2, { message: 'both sessions to be given up' });
    network.fault = { kind: 'none' };
    await network.reset();
    await recovered({ witness: 'is over', log: Array(2).fill('warn ERR_UPSTREAM_TIMEOUT') });
  });

  test.serial(
    `${title}: server says what nobody asked, and what is no message: the call gets its own answer, once`,
    async (t) => {
      const connected = await startConnected(t, name);
      const { server, network, victim, witness, recovered } = connected;
      server.answer = (call) => {
        const { id, text, say } = call;
        for (const nonsense of ['{"jsonrpc"', '[[[[', 'null', '{"jsonrpc":"2.0"}', 'GET / HTTP/1.1']) say(nonsense);
        for (const other of ['nobody', 12345, `x${id}`]) say(resultOf(other, 'wrong'));
        say(resultOf(id, text));
        say(resultOf(id, 'again'));
      };
      const [one, other] = await Promise.all([victim.call('echo', 'mine'), witness.call('echo', 'not yours')]);
      t.is(one.text, 'mine');
      t.is(other.text, 'not yours');
      t.is((await victim.call('echo', 'and on')).text, 'and on');
      server.answer = echo;
      const url = network.through(server.url).href;
      const noise =
        name === 'webSocket'
          ? `warn The server at ${url} sent something that is not a message; skipping it`
          : NOISE_OF_LINES;
      const unmatched = `warn Server "${url}" sent an answer that matches no open call and is dropped; its id is a string`;
      await recovered({ log: [unmatched, noise, noise] });
    },
  );

  test.serial(
    `${title}: server sends a message that is far too large: one error, and memory stays within bounds`,
    async (t) => {
      const connected = await startConnected(t, name, ['--max-message-bytes', '1m']);
      const { server, victim, recovered } = connected;
      const staysWithin = grewLess(t, connected);
      server.answer = (call) => call.say(resultOf(call.id, 'x'.repeat(64 * MIB)));
      t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_TOO_LARGE'));
      staysWithin();
      server.answer = echo;
      // A frame says its length ahead, and nothing of it is read.
      if (name === 'webSocket') await isOver(t, connected);
      else t.is((await victim.call('echo', 'and on')).text, 'and on');
      await recovered({ log: [name === 'webSocket' ? 'warn ERR_UPSTREAM_TOO_LARGE' : 'error ERR_UPSTREAM_TOO_LARGE'] });
    },
  );

  test.serial(
    `${title}: server stops reading: calls time out one by one, others are served, and memory stays within bounds`,
    async (t) => {
      const connected = await startConnected(t, name, ['--request-timeout', '5s']);
      const { server, victim, witness, recovered } = connected;
      const staysWithin = grewLess(t, connected);
      server.answer = (call) => {
        echo(call);
        if (call.text === 'read no more') call.socket.pause();
      };
      t.is((await victim.call('echo', 'read no more')).text, 'read no more');
      const unread = Array.from({ length: 40 }, () => victim.call('echo', 'x'.repeat(MIB)));
      t.is((await witness.call('echo', 'and I?')).text, 'and I?');
      for (const { error } of await Promise.all(unread))
        t.regex(JSON.stringify(error), /ERR_UPSTREAM_TIMEOUT|ERR_SESSION_BUSY/);
      staysWithin();
      await recovered();
    },
  );

  test.serial(
    `${title}: server floods a client that does not read: it has to wait, and memory stays within bounds`,
    async (t) => {
      const connected = await startConnected(t, name);
      const { server, victim, witness, recovered } = connected;
      const staysWithin = grewLess(t, connected);
      const flood: { sentBytes: number; stop: () => void } = { sentBytes: 0, stop: () => undefined };
      server.answer = (call) => (call.text === 'flood' ? floods(call, flood) : echo(call));
      const answer = await victim.start('echo', 'flood');
      let last = -1;
      let quietLooks = 0;
      await waitFor(() => {
        quietLooks = flood.sentBytes === last ? quietLooks + 1 : 0;
        last = flood.sentBytes;
        return quietLooks > 20;
      });
      t.true(flood.sentBytes < 64 * MIB, `${flood.sentBytes} bytes were taken`);
      t.is((await witness.call('echo', 'and I?')).text, 'and I?');
      staysWithin();
      flood.stop();
      answer.leave();
      await recovered();
    },
  );
}

test.serial(
  'byte stream: the connection of several clients is lost: each call gets one error, and they go on with the next one',
  async (t) => {
    const connected = await startConnected(t, 'stream', ['--isolation', 'shared']);
    const { server, network, victim, witness, recovered } = connected;
    let asked = 0;
    server.answer = () => {
      asked += 1;
    };
    const open = [victim.call('echo', 'a'), witness.call('echo', 'b')];
    await waitFor(() => asked === 2);
    server.answer = echo;
    await network.reset();
    for (const { error } of await Promise.all(open)) t.like(error, errorOf('ERR_UPSTREAM_CLOSED'));
    t.is((await victim.call('echo', 'and on')).text, 'and on');
    await recovered({ log: ['warn ERR_UPSTREAM_CLOSED'] });
  },
);

test.serial('WebSocket: server sends what is no frame: one error, and the session is over', async (t) => {
  const connected = await startConnected(t, 'webSocket');
  const { server, victim, recovered } = connected;
  server.answer = ({ socket }) => void socket.write('HTTP/1.1 500 Internal Server Error\r\n\r\n');
  t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_PROTOCOL'));
  server.answer = echo;
  await isOver(t, connected);
  await recovered({ log: ['warn ERR_UPSTREAM_PROTOCOL'] });
});

/** Without an end, as fast as it is taken. */
function floods({ say, socket }: ConnectionCall, flood: { sentBytes: number; stop: () => void }): void {
  const params = { level: 'info', data: 'x'.repeat(64 * 1024) };
  let isStopped = false;
  flood.stop = () => {
    isStopped = true;
  };
  const go = (): void => {
    while (!isStopped && !socket.destroyed && socket.writableLength < MIB) {
      say({ jsonrpc: '2.0', method: 'notifications/message', params });
      flood.sentBytes += params.data.length;
    }
  };
  socket.on('drain', go);
  go();
}
