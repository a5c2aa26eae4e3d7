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
  type ConnectionName,
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

interface Expected {
  /** Whether the session ends with its connection. Otherwise the next message opens another connection. */
  readonly isOver: boolean;
  /** What a call gets when the end comes within its answer: a regular end, or a reset. */
  readonly cut: Readonly<Record<'end' | 'reset', string>>;
  /** What is left of a message is a message, though it is none of MCP. */
  readonly hasRest?: true;
  /** How a server is found out that is silent. */
  readonly silence: readonly string[];
  /** The log of what is no message. */
  readonly noise: (server: string) => string;
  /** Whether a message that is too large ends the session, as its length is known ahead and nothing of it is read. */
  readonly endsAtTooLarge: boolean;
}

const CUT = { end: 'ERR_UPSTREAM_CLOSED', reset: 'ERR_UPSTREAM_CLOSED' } as const;
const noise = (server: string): string =>
  `warn The server at ${server} sent something that is not a message; skipping it`;

const EXPECTED: Readonly<Record<ConnectionName, Expected>> = {
  // Pings of WebSocket are sent within the limit on silence.
  webSocket: { isOver: true, cut: CUT, silence: ['--idle-timeout', '3s'], noise, endsAtTooLarge: true },
  stream: {
    isOver: true,
    cut: CUT,
    hasRest: true,
    silence: ['--keep-alive', '1s'],
    noise: () => NOISE_OF_LINES,
    endsAtTooLarge: false,
  },
  grpc: { isOver: true, cut: CUT, silence: ['--keep-alive', '1s'], noise, endsAtTooLarge: true },
  // Devices come and go. Those who are connected with a broker ping it as often as it wants.
  mqtt: { isOver: false, cut: CUT, silence: [], noise, endsAtTooLarge: false },
};

const errorOf = (reason: string) => ({ code: -32603, data: { bridge: { reason } } });

/** What becomes of the session of a client when its connection is lost. */
async function sessionEnds(t: ExecutionContext, { victim }: Connected, isOver: boolean): Promise<void> {
  const { status, text } = await victim.call('echo', 'and on');
  if (isOver) t.is(status, 404, 'the client is told to open a new session');
  else t.is(text, 'and on');
}

/** While connections are refused. */
const hasLost = ({ victim }: Connected) =>
  waitFor(
    async () => {
      const { status, error } = await victim.call('echo', 'x');
      return status === 404 || error !== undefined;
    },
    { message: 'the loss to be known' },
  );

const grewLess = (t: ExecutionContext, { bridge }: Connected): (() => void) => {
  const before = rssMiBOf(bridge.pid);
  return () => {
    const grown = rssMiBOf(bridge.pid) - before;
    t.true(grown < BOUND_MIB, `${grown} MiB more`);
  };
};

for (const name of CONNECTION_NAMES) {
  const { title } = CONNECTIONS[name];
  const { isOver, cut, hasRest, silence, noise, endsAtTooLarge } = EXPECTED[name];
  const end = isOver ? 'the session is over' : 'the session goes on';
  const witness = isOver ? 'is over' : 'is served';

  for (const by of ['end', 'reset'] as const) {
    test.serial(`${title}: network cuts a message in two (${by}): one error, and ${end}`, async (t) => {
      const connected = await startConnected(t, name);
      connected.network.fault = { kind: 'truncate', marker: MARK, keep: 1, by };
      t.like((await connected.victim.call('echo', `some text, ${MARK} and more`)).error, errorOf(cut[by]));
      await sessionEnds(t, connected, isOver);
      await connected.recovered({ log: [`warn ${cut[by]}`, ...(hasRest ? [noise('')] : [])] });
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
    // How often a session looks for its server meanwhile is a matter of time.
    const attempts = bridge.logs.filter(({ code, level }) => code === 'ERR_UPSTREAM_CONNECT' && level === 'warn');
    await sessionEnds(t, connected, isOver);
    await connected.recovered({
      witness,
      log: [
        ...Array(losses).fill('warn ERR_UPSTREAM_CLOSED'),
        ...Array(attempts.length).fill('warn ERR_UPSTREAM_CONNECT'),
      ],
    });
  });

  test.serial(`${title}: a server that vanishes without a word is found out, and ${end}`, async (t) => {
    const connected = await startConnected(t, name, silence);
    const { bridge, network, server, victim, recovered } = connected;
    t.is((await victim.call('echo', 'one')).text, 'one');
    // A server that has never answered a ping may be one that answers none.
    if (name === 'stream') await waitFor(() => server.pings > 1, { message: 'two pings' });
    network.fault = { kind: 'silence' };
    t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_TIMEOUT'));
    if (isOver) await sessionEnds(t, connected, isOver);
    // The session of the witness is pinged at other times, and is to be given up for its silence, too.
    const givenUp = () => bridge.logs.filter(({ code, level }) => code === 'ERR_UPSTREAM_TIMEOUT' && level === 'warn');
    await waitFor(() => givenUp().length >= 2, { message: 'both sessions to be given up' });
    network.fault = { kind: 'none' };
    await network.reset();
    await sessionEnds(t, connected, isOver);
    await recovered({ witness, log: Array(2).fill('warn ERR_UPSTREAM_TIMEOUT') });
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
      const unmatched = `warn Server "${url}" sent an answer that matches no open call and is dropped; its id is a string`;
      await recovered({ log: [unmatched, noise(url), noise(url)] });
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
      await sessionEnds(t, connected, endsAtTooLarge);
      await recovered({ log: [`${endsAtTooLarge ? 'warn' : 'error'} ERR_UPSTREAM_TOO_LARGE`] });
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
        if (call.text === 'read no more') call.readNoMore();
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

  // A broker takes whatever comes, so there nobody has to wait.
  if (name === 'mqtt') continue;

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

const mqtt = CONNECTION_NAMES.includes('mqtt') ? test.serial : test.serial.skip;

mqtt(
  'MQTT: server floods a client that does not read: the broker keeps it, and all of it comes in the end',
  async (t) => {
    const connected = await startConnected(t, 'mqtt');
    const { server, victim, witness, recovered } = connected;
    const staysWithin = grewLess(t, connected);
    const notes = 256;
    const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(MIB) } };
    server.answer = (call) => {
      if (call.text === 'flood') for (let sent = 0; sent < notes; sent += 1) call.say(note);
      echo(call);
    };
    const answer = await victim.start('echo', 'flood');
    // It comes behind all of that, but for the bridge.
    t.is((await witness.call('echo', 'and I?')).text, 'and I?');
    staysWithin();
    const body = await answer.text();
    t.is(body.split('notifications/message').length - 1, notes);
    t.true(body.includes('"text":"flood"'));
    staysWithin();
    await recovered();
  },
);

for (const name of CONNECTION_NAMES.filter((other) => other !== 'webSocket')) {
  test.serial(
    `${CONNECTIONS[name].title}: the connection of several clients is lost: each call gets one error, and they go on with the next one`,
    async (t) => {
      const connected = await startConnected(t, name, ['--isolation', 'shared']);
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
}

test.serial('WebSocket: server sends what is no frame: one error, and the session is over', async (t) => {
  const connected = await startConnected(t, 'webSocket');
  const { server, victim, recovered } = connected;
  server.answer = ({ carrier }) => void carrier.write('HTTP/1.1 500 Internal Server Error\r\n\r\n');
  t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_PROTOCOL'));
  server.answer = echo;
  await sessionEnds(t, connected, true);
  await recovered({ log: ['warn ERR_UPSTREAM_PROTOCOL'] });
});

/** Without an end, as fast as it is taken. */
function floods({ say, carrier }: ConnectionCall, flood: { sentBytes: number; stop: () => void }): void {
  const params = { level: 'info', data: 'x'.repeat(64 * 1024) };
  let isStopped = false;
  flood.stop = () => {
    isStopped = true;
  };
  const go = (): void => {
    while (!isStopped && !carrier.destroyed && carrier.writableLength < MIB) {
      say({ jsonrpc: '2.0', method: 'notifications/message', params });
      flood.sentBytes += params.data.length;
    }
  };
  carrier.on('drain', go);
  go();
}
