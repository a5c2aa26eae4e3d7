/** What can happen on the way between the bridge and a server at a URL, through the built bridge. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { event, listenScripted, openStream, resultOf } from '../fixtures/http-servers/scripted.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectClient, type Era, outcomeOf } from './fault-clients.ts';
import { type Aftermath, startFaulty } from './faulty-bridge.ts';
import { REMOTE_KINDS, REMOTE_NAMES, type Remote, type RemoteName, startRemote } from './faulty-remote.ts';

/** Stands in the answers that the network damages, and nowhere else. */
const MARK = '€';

const errorOf = (reason: string) => ({ code: -32603, data: { bridge: { reason } } });

interface Expected {
  /** What a call gets whose answer broke off. */
  readonly broken: string;
  /** What a call gets whose connection was reset when it had left. */
  readonly reset: string | undefined;
  /** The log of each. */
  readonly level: 'warn' | 'error';
  /** A stream that is the session ends it; everything else goes on. */
  readonly isSession: boolean;
  /** The log of a call's cancellation that cannot be said: the network is as it was when the call failed. */
  readonly untold: readonly string[];
}

const EXPECTED: Readonly<Record<RemoteName, Expected>> = {
  streamable: {
    broken: 'ERR_UPSTREAM_CLOSED',
    reset: 'ERR_UPSTREAM_CONNECT',
    level: 'error',
    isSession: false,
    untold: ['warn ERR_UPSTREAM_CONNECT'],
  },
  // Nobody can tell whether a modern server has run the call. It is canceled by leaving.
  modern: {
    broken: 'ERR_UPSTREAM_DELIVERY',
    reset: 'ERR_UPSTREAM_DELIVERY',
    level: 'error',
    isSession: false,
    untold: [],
  },
  httpSse: {
    broken: 'ERR_UPSTREAM_CLOSED',
    reset: undefined,
    level: 'warn',
    isSession: true,
    untold: ['warn ERR_UPSTREAM_CONNECT'],
  },
};

async function goesOn(t: ExecutionContext, { victim }: Remote, isOver: boolean): Promise<void> {
  const { status, text } = await victim.call('echo', `whole ${MARK}`);
  if (isOver) t.is(status, 404, 'the client is told to open a new session');
  else t.is(text, `whole ${MARK}`);
}

/** Its answer is all that is said of it: the log has the loss. */
async function isRefused(t: ExecutionContext, { bridge }: Remote, era: Era): Promise<readonly string[]> {
  await t.throwsAsync(connectClient(bridge, era), { message: /"reason":"ERR_UPSTREAM_CONNECT"/ });
  return [];
}

async function isReset(
  t: ExecutionContext,
  remote: Remote,
  { reset = '', untold }: Expected,
): Promise<readonly string[]> {
  t.like((await remote.victim.call('echo', 'x')).error, errorOf(reset));
  await isUntold(remote, untold);
  return [`error ${reset}`, ...untold];
}

/** The attempt to cancel has failed. When the network is back, it might not. */
const isUntold = ({ bridge }: Remote, untold: readonly string[]) =>
  waitFor(() => untold.every((line) => bridge.logs.some(({ level, code }) => `${level} ${code}` === line)));

for (const name of REMOTE_NAMES) {
  const { broken, level, isSession, untold } = EXPECTED[name];
  const { title, era } = REMOTE_KINDS[name];
  const end = isSession ? 'the session is over' : 'the session goes on';
  /** Of those who were there when all connections were lost. */
  const lostAll: Aftermath = isSession
    ? { witness: 'is over', log: ['warn ERR_UPSTREAM_CLOSED', 'warn ERR_UPSTREAM_CLOSED'] }
    : {};

  /** The loss of all connections is known. */
  const isKnown = ({ victim }: Remote) =>
    waitFor(async () => !isSession || (await victim.call('echo', 'x')).status === 404);

  for (const by of ['end', 'reset'] as const) {
    const cuts = { 'in the middle of an event': -20, 'in the middle of a character': 1 };
    for (const [where, keep] of Object.entries(cuts)) {
      test.serial(`${title}: network truncates an answer ${where} (${by}): one error, and ${end}`, async (t) => {
        const remote = await startRemote(t, name);
        remote.network.fault = { kind: 'truncate', marker: MARK, keep, by };
        const { error } = await remote.victim.call('echo', `some text, ${MARK} and more`);
        t.like(error, errorOf(broken));
        await goesOn(t, remote, isSession);
        await remote.recovered({ log: [`${level} ${broken}`] });
      });
    }
  }

  test.serial(`${title}: network resets all connections between two calls: ${end}`, async (t) => {
    const remote = await startRemote(t, name);
    t.is((await remote.victim.call('echo', 'one')).text, 'one');
    await remote.network.reset();
    await isKnown(remote);
    await goesOn(t, remote, isSession);
    await remote.recovered(lostAll);
  });

  test.serial(
    `${title}: network resets what is there and what comes: plain errors, and answers when it is back`,
    async (t) => {
      const remote = await startRemote(t, name);
      t.is((await remote.victim.call('echo', 'one')).text, 'one');
      remote.network.fault = { kind: 'refuse' };
      await remote.network.reset();
      await isKnown(remote);
      const log = isSession ? await isRefused(t, remote, era) : await isReset(t, remote, EXPECTED[name]);
      remote.network.fault = { kind: 'none' };
      await goesOn(t, remote, isSession);
      await remote.recovered({ ...lostAll, log: [...(lostAll.log ?? []), ...log] });
    },
  );

  test.serial(`${title}: network delays everything: answers come late and whole`, async (t) => {
    const { network, victim, recovered } = await startRemote(t, name);
    network.fault = { kind: 'delay', ms: 300 };
    t.is((await victim.call('echo', `late ${MARK}`)).text, `late ${MARK}`);
    network.fault = { kind: 'none' };
    await recovered();
  });

  test.serial(`${title}: network falls silent: the call times out; when it is back, ${end}`, async (t) => {
    const remote = await startRemote(t, name, ['--request-timeout', '8s']);
    t.is((await remote.victim.call('echo', 'one')).text, 'one');
    remote.network.fault = { kind: 'silence' };
    t.like((await remote.victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_TIMEOUT'));
    // A modern request is withdrawn by leaving. The loss of a session ends whatever is on its way, so that goes first.
    if (era === 'legacy') await (await remote.network.passed('notifications/cancelled'))();
    await isUntold(remote, untold);
    remote.network.fault = { kind: 'none' };
    await remote.network.reset();
    await isKnown(remote);
    await goesOn(t, remote, isSession);
    await remote.recovered({ ...lostAll, log: [...(lostAll.log ?? []), ...untold] });
  });
}

test.serial('network cut during a call whose stream can be resumed: the answer arrives, once', async (t) => {
  let waiting: unknown;
  const server = await listenScripted({
    'tools/call': (asked, response) => {
      const { name, arguments: given } = asked.message.params as { name: string; arguments: { text: string } };
      if (name === 'echo') return void openStream(response).end(event(resultOf(asked, given.text)));
      waiting = asked.message.id;
      openStream(response).write(`retry: 10\n${event({ jsonrpc: '2.0', method: 'x/event' }, '1')}`);
    },
    GET: (asked, response) => {
      if (asked.headers['last-event-id'] === undefined) return void response.writeHead(405).end();
      const result = { content: [{ type: 'text', text: 'resumed' }] };
      openStream(response).end(event({ jsonrpc: '2.0', id: waiting, result }, '2'));
    },
  });
  const network = await startFaultProxy(server.url);
  t.teardown(async () => {
    await network.close();
    await server.close();
  });
  const { victim, recovered } = await startFaulty(t, { target: [network.through(server.url).href] });
  // The client has the head of its answer with the first event: what was said before the cut has arrived.
  const answer = await victim.start('slow', 'x');
  t.not(waiting, undefined);
  await network.reset();
  t.is((await outcomeOf(answer)).text, 'resumed');
  await recovered();
});
