/** What the streams of a session have said, where the store has lost it. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { Redis } from 'ioredis';
import { startLegacyHttp } from '../../matrix/servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { EventText } from './event-text.ts';
import { openSession, type RawSession } from './raw-session.ts';
import { PATIENT_LEASE_MS, type Place, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const URI = 'test://static';

interface Scene {
  readonly bed: TestBed;
  readonly owner: Place;
  readonly other: Place;
  /** Of the owner. It has subscribed to a resource. */
  readonly session: RawSession;
}

async function startTwo(t: ExecutionContext): Promise<Scene> {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href], count: 2, leaseMs: PATIENT_LEASE_MS });
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const [owner, other] = bed.places;
  if (owner === undefined || other === undefined) throw new Error('there are two');
  const session = await openSession(owner.port);
  await session.post(owner.port, 'resources/subscribe', { uri: URI });
  return { bed, owner, other, session };
}

const openStream = async ({ headers }: RawSession, { port }: Place): Promise<EventText> =>
  new EventText(await fetch(`http://127.0.0.1:${port}/mcp`, { headers: { ...headers, Accept: 'text/event-stream' } }));

/** Has the server say that the resource has changed. */
const touch = (session: RawSession, { port }: Place) =>
  session.post(port, 'tools/call', { name: 'touch', arguments: { uri: URI } });

/** Keys of what streams have said. */
async function storedStreams({ redis: { url } }: TestBed, use: (redis: Redis, keys: readonly string[]) => unknown) {
  const redis = new Redis(url.href);
  try {
    const keys = await redis.keys('*');
    const types = await Promise.all(keys.map((key) => redis.type(key)));
    const streams = keys.filter((_, index) => types[index] === 'stream');
    await use(redis, streams);
    return streams.length;
  } finally {
    redis.disconnect();
  }
}

const idsIn = (text: string): readonly string[] => [...text.matchAll(/^id: ?(.+)$/gm)].map(([, id = '']) => id);

test(`what waits for a client is stored again after Redis was restarted empty, and told by the next replica${WHY}`, async (t) => {
  const { bed, owner, other, session } = await startTwo(t);
  await touch(session, owner);
  const isStored = async (): Promise<boolean> => (await storedStreams(bed, () => undefined)) > 0;
  await waitFor(isStored, { message: 'the notification to be stored' });
  await bed.redis.restart();
  await waitFor(isStored, { message: 'the notification to be stored again' });
  await owner.bridge.stop();
  const stream = await openStream(session, other);
  t.regex(await stream.until(/resources\/updated/), /test:\/\/static/);
});

test(`no event id is used again by a replica that finds nothing of what was said${WHY}`, async (t) => {
  const { bed, owner, other, session } = await startTwo(t);
  const before = await openStream(session, owner);
  await touch(session, owner);
  const heard = idsIn(await before.until(/resources\/updated/));
  await owner.bridge.stop();
  await storedStreams(bed, (redis, keys) => redis.del(...keys));
  const after = await openStream(session, other);
  await touch(session, other);
  const ids = idsIn(await after.until(/resources\/updated/));
  t.true(heard.length > 0 && ids.length > 0);
  t.deepEqual(
    ids.filter((id) => heard.includes(id)),
    [],
  );
  t.is((await session.resume(other.port, heard[0] ?? '')).status, 400);
});
