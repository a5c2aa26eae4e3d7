/** Calls under way in a replica that dies, at a server whose streams can be resumed: another replica waits for the answers. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { COMMIT_STORED_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { startLegacyHttp } from '../../matrix/servers.ts';
import type { ServerProcess } from '../../support/server-process.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { EventText } from './event-text.ts';
import { openSession } from './raw-session.ts';
import { LEASE_MS, type Place, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;

interface TwoReplicas {
  readonly server: ServerProcess;
  readonly owner: Place;
  readonly heir: Place;
  /** Kills the owner. */
  kill(): Promise<void>;
}

/** Two replicas of a remote server. */
async function startTwo(
  t: ExecutionContext,
  kind: 'stateful' | 'stateful-resumable' = 'stateful-resumable',
): Promise<TwoReplicas> {
  const server = await startLegacyHttp(kind);
  const bed = await startTestBed({ args: [server.url.href], count: 2, leaseMs: LEASE_MS });
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const [owner, heir] = bed.places;
  if (owner === undefined || heir === undefined) throw new Error('there are two');
  return {
    server,
    owner,
    heir,
    async kill() {
      owner.bridge.kill('SIGKILL');
      await owner.bridge.exited;
    },
  };
}

const holding = (id: string, value: string): object => ({
  id,
  method: 'tools/call',
  params: { name: 'hold', arguments: { value }, _meta: { progressToken: id } },
});

test(`a call under way in a replica that dies is answered by another one, and runs once${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t);
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(owner.port, holding('held', 'to the end')));
  await stream.until(/notifications\/progress/);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  await session.post(heir.port, 'tools/call', { name: 'release', arguments: { value: 'to the end' } });
  t.regex(await rest.until(/"id":"held"/), /"result".*to the end/);
  const { text } = await session.post(heir.port, 'test/record');
  t.is(text.split('"name":"hold","arguments":{"value":"to the end"}').length - 1, 1);
});

test(`a call that has said nothing yet when its replica dies is answered by another one${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t);
  const session = await openSession(owner.port);
  const call = { id: 'silent', method: 'tools/call', params: { name: 'hold', arguments: { value: 'in silence' } } };
  const stream = new EventText(await session.send(owner.port, call));
  // The event that tells the client how to come back.
  await stream.until(/^id: .*\n/m);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  await session.post(heir.port, 'tools/call', { name: 'release', arguments: { value: 'in silence' } });
  t.regex(await rest.until(/"id":"silent"/), /"result".*in silence/);
});

test(`a call whose client got its stream before the server said anything is answered by another replica${WHY}`, async (t) => {
  const { server, owner, heir, kill } = await startTwo(t);
  const session = await openSession(owner.port);
  process.kill(server.pid, 'SIGSTOP');
  const stream = new EventText(await session.send(owner.port, holding('held', 'after silence')));
  await stream.until(/^id: .*\n/m);
  process.kill(server.pid, 'SIGCONT');
  await stream.until(/notifications\/progress/);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  await session.post(heir.port, 'tools/call', { name: 'release', arguments: { value: 'after silence' } });
  t.regex(await rest.until(/"id":"held"/), /"result".*after silence/);
});

test(`what a call has asked its client before its replica died is answered through another one${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t);
  const session = await openSession(owner.port, { capabilities: { elicitation: {} } });
  const question = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: SCHEMA } };
  const params = { name: 'interview', arguments: { rounds: [[question], [question]] } };
  const stream = new EventText(await session.send(owner.port, { id: 'asking', method: 'tools/call', params }));
  await stream.until(/elicitation\/create/);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  const answer = async (asked: EventText, name: string): Promise<void> => {
    const id = Number([...asked.text.matchAll(/"id":(\d+)/g)].at(-1)?.[1]);
    const { status } = await session.send(heir.port, { id, result: { action: 'accept', content: { name } } });
    t.is(status, 202);
  };
  await answer(stream, 'Ada');
  await rest.until(/elicitation\/create/);
  await answer(rest, 'Grace');
  t.regex(await rest.until(/"id":"asking"/), /Ada.*Grace/);
});

test(`a call under way in a replica that stands still is answered by another one, to which it leads when it wakes, and runs once${WHY}`, async (t) => {
  const { owner, heir } = await startTwo(t);
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(owner.port, holding('held', 'elsewhere')));
  await stream.until(/notifications\/progress/);
  owner.bridge.kill('SIGSTOP');
  try {
    const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
    await session.post(heir.port, 'tools/call', { name: 'release', arguments: { value: 'elsewhere' } });
    t.regex(await rest.until(/"id":"held"/), /"result".*elsewhere/);
  } finally {
    owner.bridge.kill('SIGCONT');
  }
  await waitFor(() => session.answered(owner.port, 'ping'), { message: 'the owner to lead to the heir' });
  const { text } = await session.post(heir.port, 'test/record');
  t.is(text.split('"name":"hold","arguments":{"value":"elsewhere"}').length - 1, 1);
});

test(`a client that comes back for a call at a server without event ids is told that it is lost, however soon its replica dies${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t, 'stateful');
  const session = await openSession(owner.port);
  const stream = new EventText(await session.send(owner.port, holding('held', 'in vain')));
  await stream.until(/notifications\/progress.*\n\n/s);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  t.regex(await rest.until(/"id":"held"/), /"error".*not known/);
  const { text } = await session.post(heir.port, 'test/record');
  t.is(text.split('"name":"hold","arguments":{"value":"in vain"}').length - 1, 1);
});

test(`a call that stays silent has a stream after a quarter of a second, and its client is told that it is lost with its replica${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t, 'stateful');
  const session = await openSession(owner.port);
  const call = { id: 'silent', method: 'tools/call', params: { name: 'wait', arguments: { label: 'silence' } } };
  const startMs = performance.now();
  const stream = new EventText(await session.send(owner.port, call));
  await stream.until(/^id: .*\n/m);
  t.true(performance.now() - startMs >= COMMIT_STORED_AFTER_MS, 'most calls are answered sooner, and need none');
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  t.regex(await rest.until(/"id":"silent"/), /"error".*not known/);
});

test(`the requests of a batch that were not answered before its replica died are said to be lost${WHY}`, async (t) => {
  const { owner, heir, kill } = await startTwo(t);
  const session = await openSession(owner.port, { revision: '2025-03-26' });
  const batch = [holding('first', 'one'), holding('second', 'two'), holding('third', 'three')];
  const stream = new EventText(await session.send(owner.port, batch));
  await stream.until(/(notifications\/progress.*){3}/s);
  await session.post(owner.port, 'tools/call', { name: 'release', arguments: { value: 'one' } });
  await stream.until(/"id":"first".*\n\n/s);
  await kill();
  const rest = new EventText(await session.resume(heir.port, stream.lastEventId));
  const text = await rest.until(/"id":"third"/);
  for (const id of ['second', 'third']) t.regex(text, new RegExp(`"id":"${id}","error".*not known`));
});

test(`a call of an official client through the balancer is answered whichever replica dies meanwhile${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href], leaseMs: LEASE_MS });
  const client = new Client({ name: 'official', version: '1' });
  t.teardown(async () => {
    await client.close();
    await bed.stop();
    await server.stop();
  });
  await client.connect(new StreamableHTTPClientTransport(bed.url));
  for (const [index, place] of bed.places.entries()) {
    const value = `while replica ${index} dies`;
    let hasBegun = false;
    const call = client.callTool({ name: 'hold', arguments: { value } }, undefined, {
      onprogress: () => {
        hasBegun = true;
      },
    });
    await waitFor(() => hasBegun, { message: 'the call to begin' });
    place.bridge.kill('SIGKILL');
    await place.bridge.exited;
    await place.start();
    await client.callTool({ name: 'release', arguments: { value } });
    t.deepEqual((await call).content, [{ type: 'text', text: value }]);
  }
});

const SCHEMA = { type: 'object', properties: { name: { type: 'string' } } };
