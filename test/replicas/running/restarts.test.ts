/** What is under way while a replica ends on SIGTERM, where it would be lost with it. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { startLegacyHttp } from '../../matrix/servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { EventText } from './event-text.ts';
import { openSession } from './raw-session.ts';
import { PATIENT_LEASE_MS, type Place, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
/** More than any of this takes. What is not answered before is lost. */
const GRACE = ['--shutdown-grace', '20s'];

/** Two replicas of a remote server. */
async function startTwo(t: ExecutionContext, grace = GRACE): Promise<readonly [Place, Place]> {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [...grace, server.url.href], count: 2, leaseMs: PATIENT_LEASE_MS });
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const [one, other] = bed.places;
  if (one === undefined || other === undefined) throw new Error('there are two');
  return [one, other];
}

/** Has the replica end. Resolves when it accepts no connections anymore. */
async function beginEnd({ port, bridge }: Place): Promise<void> {
  bridge.kill('SIGTERM');
  const isRefused = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      () => false,
      () => true,
    );
  await waitFor(isRefused, { message: 'the replica to stop listening' });
}

const holding = (id: string, value: string): object => ({
  id,
  method: 'tools/call',
  params: { name: 'hold', arguments: { value }, _meta: { progressToken: id } },
});

test(`a replica that ends still brings back the responses to what it has passed on${WHY}`, async (t) => {
  const [entry, owner] = await startTwo(t);
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(entry.port, holding('held', 'passed on')));
  await stream.until(/notifications\/progress/);
  await beginEnd(entry);
  await session.post(owner.port, 'tools/call', { name: 'release', arguments: { value: 'passed on' } });
  t.regex(await stream.until(/"id":"held"/), /"result".*passed on/);
  t.is((await entry.bridge.exited).code, 0);
});

test(`a call that asks its client while its replica ends gets the answers through another one${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t);
  const session = await openSession(owner.port, { capabilities: { elicitation: {} } });
  const question = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: SCHEMA } };
  const params = { name: 'interview', arguments: { rounds: [[question], [question]] } };
  const stream = new EventText(await session.send(entry.port, { id: 'asking', method: 'tools/call', params }));
  await stream.until(/elicitation\/create/);
  await beginEnd(owner);
  for (const name of ['Ada', 'Grace']) {
    const asked = [...stream.text.matchAll(/"id":(\d+)/g)].at(-1)?.[1];
    const result = { action: 'accept', content: { name } };
    const answer = await session.send(entry.port, { id: Number(asked), result });
    t.is(answer.status, 202);
    await stream.until(name === 'Ada' ? /(elicitation\/create[\s\S]*){2}/ : /"id":"asking"/);
  }
  t.regex(stream.text, /Ada.*Grace/);
  t.is((await owner.bridge.exited).code, 0);
});

test(`calls of a session that moves when its last call is answered wait, and run once${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t);
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(entry.port, holding('held', 'last')));
  await stream.until(/notifications\/progress/);
  await beginEnd(owner);
  const waiting = session.post(entry.port, 'tools/call', { name: 'echo', arguments: { value: 'elsewhere' } });
  const released = openSession(entry.port).then((other) =>
    other.post(entry.port, 'tools/call', { name: 'release', arguments: { value: 'last' } }),
  );
  t.regex((await released).text, /true/);
  t.regex(await stream.until(/"id":"held"/), /"result".*last/);
  t.regex((await waiting).text, /elsewhere/);
  const { text } = await session.post(entry.port, 'test/record');
  t.is(text.split('"arguments":{"value":"elsewhere"}').length - 1, 1);
});

test(`a call that takes longer than its replica may take to end goes on through another one${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t, ['--shutdown-grace', '2s']);
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(owner.port, holding('held', 'longer')));
  await stream.until(/notifications\/progress/);
  await beginEnd(owner);
  await t.throwsAsync(stream.until(/"id":"held"/), { message: /the stream ended/ });
  const rest = await session.resume(entry.port, stream.lastEventId);
  await session.post(entry.port, 'tools/call', { name: 'release', arguments: { value: 'longer' } });
  t.regex(await new EventText(rest).until(/"id":"held"/), /"result".*longer/);
  t.is((await owner.bridge.exited).code, 0);
});

test(`a request whose session moves while its body is on the way is to be sent again, and the session is not called unknown${WHY}`, async (t) => {
  const [owner, entry] = await startTwo(t);
  const session = await openSession(owner.port);
  const headers = { ...session.headers, 'Transfer-Encoding': 'chunked' };
  const slow = request({ host: '127.0.0.1', port: owner.port, path: '/mcp', method: 'POST', headers });
  const responded = once(slow, 'response') as Promise<[IncomingMessage]>;
  slow.write('{"jsonrpc":"2.0","id":"slow","method":');
  // The owner has begun to read it, before it answers what came later.
  await session.post(owner.port, 'ping');
  owner.bridge.kill('SIGTERM');
  // The session is at the other one as soon as that serves it by itself.
  const isMoved = (): boolean => JSON.stringify(entry.bridge.logs).includes('continuing a session');
  await waitFor(async () => (await session.post(entry.port, 'ping')) && isMoved(), { message: 'the session to move' });
  slow.end('"ping"}');
  const [response] = await responded;
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  t.is(response.statusCode, 503, text);
  t.regex(text, /send the request again/);
});

const SCHEMA = { type: 'object', properties: { name: { type: 'string' } } };
