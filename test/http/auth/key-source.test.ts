import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { createSystemDeps } from '../../../src/cli/system-deps.ts';
import { BridgeError } from '../../../src/errors.ts';
import { createKeySource, FileKeys, RemoteKeys } from '../../../src/http/auth/key-source.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createIssuerClient, createIssuerKey, publish, startIssuer } from '../../support/fake-issuer.ts';
import { waitFor } from '../../support/wait-for.ts';

const EMPTY = { keys: [] };

function remoteKeys(log = pino({ level: 'silent' })) {
  const clock = new FakeClock();
  const state = { fetched: 0, answer: (): Promise<unknown> => Promise.resolve(EMPTY) };
  const fetch = () => {
    state.fetched += 1;
    return state.answer();
  };
  return { clock, state, keys: new RemoteKeys({ fetch, clock, log }) };
}

const down = () => Promise.reject(new Error('connect ECONNREFUSED'));

test('keys are fetched once for all who wait, and kept', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const [one, two] = await Promise.all([keys.current(), keys.current()]);
  t.is(one, two);
  clock.advance(9 * 60_000);
  t.is(await keys.current(), one);
  t.is(state.fetched, 1);
});

test('after a while they are fetched again, and nobody waits for it', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const first = await keys.current();
  clock.advance(11 * 60_000);
  t.is(await keys.current(), first);
  t.is(state.fetched, 2);
  t.not(await keys.current(), first);
});

test('an issuer that is away for a while is believed on, but not for ever', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const first = await keys.current();
  state.answer = down;
  clock.advance(59 * 60_000);
  t.is(await keys.current(), first);
  await new Promise(setImmediate);
  clock.advance(2 * 60_000);
  await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
});

test('keys are fresh for less than ten minutes, and believed for less than an hour', async (t) => {
  const { keys, state, clock } = remoteKeys();
  t.is(keys.known(), undefined);
  const first = await keys.current();
  state.answer = down;
  clock.advance(10 * 60_000 - 1);
  t.is(keys.known(), first);
  t.is(state.fetched, 1);
  clock.advance(1);
  t.is(keys.known(), first);
  t.is(state.fetched, 2);
  await new Promise(setImmediate);
  clock.advance(50 * 60_000 - 1);
  t.is(keys.known(), first);
  await new Promise(setImmediate);
  clock.advance(1);
  t.is(keys.known(), undefined);
});

test('the age of keys, and the pause after a failure, begin when they were fetched, or not', async (t) => {
  const { keys, state, clock } = remoteKeys();
  clock.advance(100 * 60_000);
  state.answer = down;
  await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
  await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
  t.is(state.fetched, 1, 'it has just failed');
  clock.advance(60_000);
  state.answer = () => Promise.resolve(EMPTY);
  const first = await keys.current();
  clock.advance(9 * 60_000);
  t.is(await keys.current(), first);
  t.is(state.fetched, 2);
});

test('the log says why the keys cannot be fetched, and clients when to come again', async (t) => {
  const lines: Record<string, unknown>[] = [];
  const { keys, state, clock } = remoteKeys(pino({}, { write: (line) => void lines.push(JSON.parse(line)) }));
  state.answer = () => Promise.reject(new BridgeError('ERR_AUTH_UNAVAILABLE', 'it is away'));
  const error = await t.throwsAsync(keys.current(), { instanceOf: BridgeError });
  t.is(error.retryAfterMs, 5000);
  t.is(error.message, "No token can be checked: the issuer's keys cannot be fetched now. Try again later.");
  t.like(error.cause, { message: 'it is away' });
  clock.advance(5000);
  state.answer = () => Promise.resolve({});
  await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
  t.deepEqual(
    lines.map(({ level, msg }) => ({ level, msg })),
    ['it is away', 'the document is no set of keys'].map((reason) => ({
      level: 40,
      msg: `The issuer's keys cannot be fetched: ${reason}`,
    })),
  );
});

test('while the issuer is away it is not asked for each request', async (t) => {
  const { keys, state, clock } = remoteKeys();
  state.answer = down;
  for (let count = 0; count < 5; count += 1) {
    const error = await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
    t.false(String(error?.message).includes('ECONNREFUSED'), 'clients do not learn about our network');
  }
  t.is(state.fetched, 1);
  state.answer = () => Promise.resolve(EMPTY);
  clock.advance(5000);
  await t.notThrowsAsync(keys.current());
  t.is(state.fetched, 2);
});

test('an unknown key makes for one look at the issuer, then for none during a while', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const first = await keys.current();
  const newer = await keys.newer(first, 'made up');
  t.not(newer, undefined);
  t.not(newer, first);
  for (let count = 0; count < 100; count += 1) {
    t.is(await keys.newer(await keys.current(), 'made up'), undefined, 'the issuer does not have it');
  }
  t.is(state.fetched, 2);
  clock.advance(30_000);
  t.not(await keys.newer(await keys.current(), 'made up'), undefined);
  t.is(state.fetched, 3);
});

test('a key that was named after the last look may be fresh: nobody knows until the next one', async (t) => {
  const { keys, state, clock } = remoteKeys();
  await keys.newer(await keys.current(), 'made up');
  clock.advance(12_000);
  const set = await keys.current();
  const error = await t.throwsAsync(keys.newer(set, 'fresh'), { instanceOf: BridgeError });
  t.is(error.code, 'ERR_AUTH_UNAVAILABLE');
  t.is(error.retryAfterMs, 18_000);
  t.regex(error.message, /key that is not known here \(yet\).* Try again later\.$/);
  t.is(state.fetched, 2);
  clock.advance(18_000);
  await keys.newer(await keys.current(), 'another');
  t.is(state.fetched, 3);
  t.is(await keys.newer(await keys.current(), 'fresh'), undefined, 'the look for another has told of this one, too');
});

test('a key that was named while the keys were being fetched is looked for anew', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const first = await keys.current();
  clock.advance(11 * 60_000);
  let finish: (document: unknown) => void = () => undefined;
  state.answer = () =>
    new Promise((resolve) => {
      finish = resolve;
    });
  t.is(keys.known(), first, 'and a renewal begins');
  const waiting = keys.newer(first, 'fresh');
  finish(EMPTY);
  const second = await waiting;
  t.is(state.fetched, 2);
  state.answer = () => Promise.resolve(EMPTY);
  const third = await keys.newer(second ?? first, 'fresh');
  t.is(state.fetched, 3);
  t.is(await keys.newer(third ?? first, 'fresh'), undefined);
});

test('after a look that failed the next one is not far', async (t) => {
  const { keys, state, clock } = remoteKeys();
  const first = await keys.current();
  state.answer = down;
  for (let count = 0; count < 5; count += 1) {
    await t.throwsAsync(keys.newer(first, 'fresh'), { code: 'ERR_AUTH_UNAVAILABLE' });
  }
  t.is(state.fetched, 2);
  t.is(keys.known(), first, 'what is known stays known');
  state.answer = () => Promise.resolve(EMPTY);
  clock.advance(5000);
  const newer = await keys.newer(first, 'fresh');
  t.is(state.fetched, 3);
  t.is(await keys.newer(newer ?? first, 'fresh'), undefined);
});

test('of all the keys that are made up only the latest are remembered', async (t) => {
  const { keys, clock } = remoteKeys();
  await keys.newer(await keys.current(), 'made up');
  const set = await keys.current();
  const names = Array.from({ length: 3000 }, (_, index) => `made up ${index}`);
  for (const name of names) await t.throwsAsync(keys.newer(set, name));
  clock.advance(30_000);
  const newer = (await keys.newer(set, 'x'.repeat(100_000))) ?? set;
  const told = await Promise.all(
    names.map((name) =>
      keys.newer(newer, name).then(
        () => true,
        () => false,
      ),
    ),
  );
  t.is(told.indexOf(true), 2000);
  t.is(told.filter(Boolean).length, 1000);
});

test('who had the old keys gets those that came meanwhile', async (t) => {
  const { keys, state } = remoteKeys();
  const first = await keys.current();
  const [one, two] = await Promise.all([keys.newer(first, 'a'), keys.newer(first, 'b')]);
  t.is(one, two);
  t.is(await keys.newer(first, 'c'), one);
  t.is(state.fetched, 2);
});

test('what is no set of keys is none', async (t) => {
  for (const document of [undefined, {}, { keys: 'x' }, { keys: ['x'] }, []]) {
    const { keys, state } = remoteKeys();
    state.answer = () => Promise.resolve(document);
    await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' }, JSON.stringify(document));
  }
});

test('keys in a file are read again when it changes, and none are left when it is gone', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'jwks.json');
  const keys = new FileKeys(file);
  await t.throwsAsync(keys.current(), {
    code: 'ERR_AUTH_UNAVAILABLE',
    message: `No token can be checked: the file ${file} holds no usable keys. Try again later.`,
  });
  t.is(keys.known(), undefined);
  await writeFile(file, JSON.stringify(EMPTY));
  const first = await keys.current();
  t.is(keys.known(), first);
  t.is(await keys.newer(first), undefined);
  await writeFile(file, `${JSON.stringify(EMPTY)}\n\n`);
  t.not(await keys.newer(first), undefined);
  await writeFile(file, 'not json at all');
  await t.throwsAsync(keys.current(), { code: 'ERR_AUTH_UNAVAILABLE' });
});

test('keys are fetched from the URL that the user named, at once, without asking the issuer where they are', async (t) => {
  const server = await startIssuer(t);
  publish(server, await createIssuerKey('one'));
  const clock = new FakeClock();
  const keys = { kind: 'url', url: new URL(`${server.url}/keys`) } as const;
  const oauth = { issuer: 'https://auth.example', audiences: ['tools'], scopes: [], keys };
  const deps = { ...createSystemDeps(pino({ level: 'silent' })), clock };
  const source = await createKeySource(oauth, async () => createIssuerClient(t, clock), deps);
  await waitFor(() => source.known() !== undefined);
  t.deepEqual(server.asked, ['/keys']);
});

test('keys in a file need no way to the issuer', async (t) => {
  const oauth = {
    issuer: 'https://auth.example',
    audiences: ['tools'],
    scopes: [],
    keys: { kind: 'file', file: '/nowhere/jwks.json' },
  } as const;
  const source = await createKeySource(
    oauth,
    async () => {
      throw new Error('no client is needed');
    },
    createSystemDeps(pino({ level: 'silent' })),
  );
  await t.throwsAsync(source.current(), { message: /\/nowhere\/jwks\.json holds no usable keys/ });
});
