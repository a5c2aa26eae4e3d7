/**
 * The bound on memory that docs/reference/limits.md states, part by part, for the built bridge. Each test makes clients want far
 * more than the bound. Memory of another process is read from /proc, so they run on Linux only. Needs a current build.
 */
import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { headersOf, modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import type { Bridge } from '../support/bridge.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import {
  type HttpSession,
  initialize,
  notification,
  openHttpSession,
  openSseStream,
  POST_HEADERS,
} from '../support/legacy-clients.ts';
import { says } from '../support/says.ts';
import { waitFor } from '../support/wait-for.ts';
import { answerTo, CARRIER_NAMES, CARRIERS, type CarrierKind, openCarried } from './carried-clients.ts';
import { rssMiBOf, startFaulty } from './faulty-bridge.ts';

/** Memory of another process is read from /proc. */
const onLinux = process.platform === 'linux' ? test.serial : test.serial.skip;

const MEBIBYTE = 'x'.repeat(1024 * 1024);
/**
 * What V8 may leave unused for a while, and what is on its way between sockets. The same for all: what clients want in
 * these tests is more than the bound with this on top.
 */
const SLACK_MIB = 150;

interface Memory {
  /** The most there was since the start of the watch, less what there was then. */
  readonly grownMiB: number;
  /** Resolves when it has not grown for a while. */
  settled(): Promise<void>;
}

function watchMemory(t: ExecutionContext, { pid }: Bridge): Memory {
  t.timeout(110_000);
  const before = rssMiBOf(pid);
  let peak = before;
  let quietLooks = 0;
  const timer = setInterval(() => {
    const now = rssMiBOf(pid);
    quietLooks = now > peak + 1 ? 0 : quietLooks + 1;
    peak = Math.max(peak, now);
  }, 20);
  t.teardown(() => clearInterval(timer));
  return {
    get grownMiB() {
      return peak - before;
    },
    settled: async () => {
      quietLooks = 0;
      await waitFor(() => quietLooks > 25, { message: 'memory to stop growing' });
    },
  };
}

function staysWithin(t: ExecutionContext, { grownMiB }: Memory, boundMiB: number, wantedMiB: number): void {
  const grown = `${grownMiB.toFixed(0)} MiB more; the bound is ${boundMiB} MiB, ${wantedMiB} MiB were wanted`;
  t.log(grown);
  t.true(grownMiB < boundMiB + SLACK_MIB, grown);
  t.true(wantedMiB > 1.2 * (boundMiB + SLACK_MIB), 'a test that could fail');
}

async function openSession(bridge: Bridge): Promise<HttpSession> {
  const session = await openHttpSession(Number(bridge.url.port));
  await (await session.post(notification('notifications/initialized'))).text();
  return session;
}

const callOf = (id: number, name: string, text = ''): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: { text } },
});

/** Of what a process has written to anything. */
function writtenMiBOf(pid: number): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]) / MEBIBYTE.length;
}

/** Takes a response and throws it away. */
async function drain({ response }: HttpAnswer): Promise<void> {
  await new Promise((resolve) => response.resume().once('close', resolve));
}

onLinux('clients that do not read hold what is stated for each, and their servers wait', async (t) => {
  const limits = ['--max-message-bytes', '1m', '--max-replay-bytes', '1m'];
  const { bridge, recovered } = await startFaulty(t, { options: limits });
  const sessions = await Promise.all(Array.from({ length: 8 }, () => openSession(bridge)));
  const memory = watchMemory(t, bridge);
  const answers = await Promise.all(sessions.map((session) => session.post(callOf(1, 'floods-stdout-with-messages'))));
  await memory.settled();
  // Unread, kept to be sent again, held back; a message that is not complete yet.
  staysWithin(t, memory, 8 * (0.25 + 1 + 1 + 1 + 1), 8 * 64);
  for (const answer of answers) answer.leave();
  for (const session of sessions) await (await session.delete()).text();
  await recovered();
});

for (const name of CARRIER_NAMES) {
  const { title, isDirect, start }: CarrierKind = CARRIERS[name];
  const what = isDirect ? 'its server waits' : 'the broker keeps it';
  onLinux(`what a server says to a client on a ${title} that pauses: ${what}, and nothing is lost`, async (t) => {
    const carrying = await start(t);
    const isReady = async (bridge: Bridge): Promise<void> => (await openCarried(carrying, bridge)).leave();
    const { bridge, witness, recovered } = await startFaulty(t, { options: carrying.options, isReady });
    const others = bridge.children();
    const client = await openCarried(carrying, bridge);
    t.teardown(client.destroy);
    const server = bridge.children().find((pid) => !others.includes(pid)) ?? Number.NaN;
    const counted: number[] = [];
    const { hear } = client;
    client.hear = (message) => {
      if (message.method === undefined) hear(message);
      else counted.push(Number.parseInt((message.params as { readonly data: string }).data, 10));
    };
    const memory = watchMemory(t, bridge);
    client.pause();
    client.say(callOf(1, 'counts-aloud'));
    await waitFor(() => writtenMiBOf(server) > (isDirect ? 0.5 : 300), { message: 'the server to say it' });
    await memory.settled();
    const writtenMiB = writtenMiBOf(server);
    if (isDirect) t.true(writtenMiB < 32, `${writtenMiB.toFixed(0)} MiB were taken`);
    t.log(`${writtenMiB.toFixed(0)} MiB were taken`);
    t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
    t.is(counted.length, 0);
    client.resume();
    await answerTo(client, 1);
    t.deepEqual(
      counted,
      Array.from({ length: 300 }, (_, index) => index + 1),
    );
    // A message at the client and one that is not complete yet; as many as a broker takes without an acknowledgment.
    staysWithin(t, memory, isDirect ? 4 : 24, 300);
    await client.leave();
    await recovered();
  });
}

onLinux('clients that do not read hold 8 MiB each where their server cannot wait for them', async (t) => {
  const limits = ['--isolation', 'shared', '--max-message-bytes', '2m'];
  const { bridge, recovered } = await startFaulty(t, { options: limits });
  const memory = watchMemory(t, bridge);
  const clients = await Promise.all(Array.from({ length: 6 }, () => openSseStream(Number(bridge.url.port))));
  for (const { post, stream } of clients) {
    await (await post(initialize('2024-11-05'))).text();
    await stream.next();
    stream.pause();
  }
  // Those that the bridge does not read yet stay open until their streams end.
  const posts = clients.flatMap(({ post }) =>
    Array.from({ length: 64 }, (_, id) => post(callOf(id, 'echo', MEBIBYTE)).then(drain)),
  );
  await memory.settled();
  // Unread, waiting, held back; bodies on their way.
  staysWithin(t, memory, 6 * (8 + 1 + 8) + 16 * 2, 6 * 64);
  for (const { stream } of clients) stream.leave();
  await Promise.allSettled(posts);
  await recovered();
});

onLinux(
  'a flood of session openings holds what the sessions there may be hold; those that nobody came back to are evicted',
  async (t) => {
    const limits = ['--isolation', 'shared', '--max-sessions', '50'];
    const { bridge, witness } = await startFaulty(t, { options: limits });
    const memory = watchMemory(t, bridge);
    const padded = { ...initialize(), padding: MEBIBYTE.slice(0, 512 * 1024) };
    const body = JSON.stringify(padded);
    const statuses: number[] = [];
    const open = async (): Promise<void> => {
      for (let n = 0; n < 50; n += 1) {
        const answer = await callHttp({ port: Number(bridge.url.port), method: 'POST', headers: POST_HEADERS, body });
        statuses.push(answer.status);
        await drain(answer);
      }
    };
    await Promise.all(Array.from({ length: 10 }, open));
    t.true(statuses.filter((status) => status === 200).length > 48, 'two are there already');
    t.deepEqual(
      statuses.filter((status) => status !== 200 && status !== 503),
      [],
    );
    staysWithin(t, memory, 16 * 0.5, 500 * 0.5);
    t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
    await bridge.stop();
    const evictions = bridge.logs.filter(({ evicted }) => evicted !== undefined);
    t.true(evictions.length > 0 && evictions.length <= 2, 'not a line for each');
    says(
      t,
      bridge,
      evictions.map(({ msg }) => `warn ${msg}`),
    );
  },
);

onLinux('what is kept for clients that come back stays within --max-replay-bytes for each session', async (t) => {
  const limits = ['--isolation', 'shared', '--max-replay-bytes', '2m', '--max-message-bytes', '2m'];
  const { bridge, recovered } = await startFaulty(t, { options: limits });
  const memory = watchMemory(t, bridge);
  const sessions: HttpSession[] = [];
  for (let n = 0; n < 12; n += 1) {
    const session = await openSession(bridge);
    await drain(await session.post(callOf(1, 'sends-large-messages', 'end')));
    sessions.push(session);
  }
  staysWithin(t, memory, 12 * (2 + 1), 12 * 32);
  for (const session of sessions) await (await session.delete()).text();
  await recovered();
});

onLinux('calls that wait for their clients hold what --max-parked-bytes says; the others are refused', async (t) => {
  // Each has a session of the server to itself: there are more than calls that may wait.
  const { bridge } = await startFaulty(t, { options: ['--max-parked-bytes', '16m', '--pool-size', '20'] });
  const memory = watchMemory(t, bridge);
  const port = Number(bridge.url.port);
  const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
  const outcomes: string[] = [];
  // One after the other: of which of several calls a legacy server asks something, nobody could tell.
  for (let id = 0; id < 220; id += 1) {
    const asked = modern(id, 'tools/call', { name: 'asks-first', arguments: { text: MEBIBYTE } }, capabilities);
    outcomes.push(await (await postModern({ port }, asked)).text());
  }
  const waiting = outcomes.filter((text) => text.includes('input_required')).length;
  t.true(waiting > 8 && waiting <= 16, `${waiting} wait`);
  staysWithin(t, memory, 16, outcomes.length);
  await bridge.stop();
  says(t, bridge, []);
});

onLinux('one client with many calls holds as many streams as it may have calls; others are refused', async (t) => {
  const { bridge, witness, victim, recovered } = await startFaulty(t, { options: ['--max-session-in-flight', '100'] });
  const memory = watchMemory(t, bridge);
  const session = await openSession(bridge);
  const left = new AbortController();
  const answers: string[] = [];
  const ask = (id: number): Promise<unknown> =>
    session
      .post(callOf(id, 'never-answers', MEBIBYTE.slice(0, 512 * 1024)), {}, left.signal)
      .then(async (answer) => answers.push(await answer.text()))
      .catch(() => undefined);
  const asked: Promise<unknown>[] = [];
  // Not all at once: on a busy machine that would take longer than the head of a request may.
  while (asked.length < 900) {
    const refused = asked.length;
    asked.push(...Array.from({ length: 100 }, (_, n) => ask(refused + n + 1)));
    await waitFor(() => answers.length >= refused, { message: () => `${answers.length} refusals` });
  }
  t.deepEqual(
    answers.filter((answer) => !answer.includes('ERR_SESSION_BUSY')),
    [],
  );
  t.is((await witness.call('echo', 'meanwhile')).text, 'meanwhile');
  staysWithin(t, memory, 100 * 0.5 + 16, 900 * 0.5);
  left.abort();
  await Promise.all(asked);
  await (await session.delete()).text();
  t.is((await victim.call('echo', 'mine')).text, 'mine');
  await recovered();
});

onLinux('clients that declare much hold what is stated for a session; what exceeds it is refused', async (t) => {
  const { bridge } = await startFaulty(t, { era: 'modern', options: ['--isolation', 'shared'] });
  const memory = watchMemory(t, bridge);
  const port = Number(bridge.url.port);
  // As objects a list of empty lists takes a dozen times the memory of its text.
  const capabilities = { experimental: { x: { list: Array.from({ length: 250_000 }, () => []) } } };
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'c', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answers: string[] = [];
  for (let n = 0; n < 60; n += 1) {
    answers.push(await (await callHttp({ port, method: 'POST', headers: POST_HEADERS, body })).text());
  }
  t.true(answers.every((answer) => answer.includes('ERR_WIRE_MESSAGE')));
  staysWithin(t, memory, 20, 60 * 12 * (body.length / MEBIBYTE.length));
  await bridge.stop();
  says(t, bridge, []);
});

onLinux('nothing stays of requests that are withdrawn', async (t) => {
  const options = ['--isolation', 'shared', '--max-message-bytes', '5m'];
  const { bridge, recovered } = await startFaulty(t, { era: 'modern', options });
  const memory = watchMemory(t, bridge);
  const listen = { ...modern(1, 'subscriptions/listen', { notifications: {}, padding: MEBIBYTE.repeat(4) }) };
  const body = JSON.stringify(listen);
  for (let n = 0; n < 120; n += 1) {
    const left = new AbortController();
    const headers = headersOf(listen);
    const asked = callHttp({ port: Number(bridge.url.port), method: 'POST', headers, body, signal: left.signal });
    await waitFor(() => bridge.children().length > 0);
    setTimeout(() => left.abort(), 40);
    await asked.then(drain, () => undefined);
  }
  // Unfinished bodies.
  staysWithin(t, memory, 16 * 5, 120 * 4);
  await recovered();
});

onLinux('answers that wait for others hold what is stated for a session', async (t) => {
  const { bridge } = await startFaulty(t, { era: 'modern' });
  const memory = watchMemory(t, bridge);
  const hello = { ...initialize(), params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} } } };
  const session = await openHttpSession(Number(bridge.url.port), hello);
  await (await session.post(notification('notifications/initialized'))).text();
  let refusals = 0;
  for (let id = 1; id <= 120; id += 1) {
    const answer = await session.post(callOf(id, 'asks-for-two'));
    const stream = answer.events();
    // What comes first has an id only.
    await stream.next();
    const question = await stream.message<{ readonly id: number }>();
    const content = { text: MEBIBYTE.repeat(4) };
    await (await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content } })).text();
    if (id > 7) {
      await waitFor(async () => (await stream.next()).data.includes('give shorter answers'));
      refusals += 1;
    }
  }
  t.is(refusals, 113);
  staysWithin(t, memory, 32 + 16, 120 * 4);
});
