/** A login with a code that the user enters in a browser of any machine. */
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../src/cli/system-deps.ts';
import type { Clock } from '../../../src/deps.ts';
import type { AskUser, RenewalOutcome, UserAnswer, UserPrompt } from '../../../src/http/client/credentials.ts';
import type { Login } from '../../../src/http/login/login.ts';
import { PATIENCE_MS } from '../../../src/http/login/patience.ts';
import { type Answer, type Fields, type LoginWorld, startLoginWorld } from '../../support/login-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createUser, type LoginSettings, temporaryFolder } from './logged-in.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const PENDING: Answer = { status: 400, body: { error: 'authorization_pending' } };
const SLOW_DOWN: Answer = { status: 429, body: { error: 'slow_down' } };

/** An authorization server that offers codes. Each member of the answer can be changed. */
async function startDeviceWorld(t: ExecutionContext, changes: Fields = {}): Promise<LoginWorld> {
  const world = await startLoginWorld(t);
  world.metadata = { device_authorization_endpoint: `${world.issuer}/device` };
  world.answerDevice = () => ({
    status: 200,
    body: {
      device_code: 'device-1',
      user_code: 'WDJB-MJHT',
      verification_uri: `${world.issuer}/enter`,
      expires_in: 600,
      interval: INTERVAL_MS / 1000,
      ...changes,
    },
  });
  return world;
}

/** The interval that these servers name: no other timer of a login takes as long. */
const INTERVAL_MS = 7000;

/** Time as it is, but for the pauses between requests and the patience of calls, which end when the test says so. */
class HeldClock implements Clock {
  readonly #held = new Map<number, (() => void)[]>();
  /** Every pause between requests, in order. */
  readonly pauses: number[] = [];

  now(): number {
    return systemClock.now();
  }

  after(delayMs: number, run: () => void): () => void {
    const isPause = delayMs >= INTERVAL_MS && delayMs < 15_000;
    if (!isPause && delayMs !== PATIENCE_MS) return systemClock.after(delayMs, run);
    if (isPause) this.pauses.push(delayMs);
    const kind = isPause ? INTERVAL_MS : delayMs;
    this.#held.set(kind, [...(this.#held.get(kind) ?? []), run]);
    return () => void this.#held.set(kind, this.#held.get(kind)?.filter((other) => other !== run) ?? []);
  }

  every(periodMs: number, run: () => void): () => void {
    return systemClock.every(periodMs, run);
  }

  isHeld(kind: number): boolean {
    return (this.#held.get(kind)?.length ?? 0) > 0;
  }

  /** Waits for a timer of this kind and lets it end. */
  async end(kind: number): Promise<void> {
    const find = () => (this.isHeld(kind) ? this.#held.get(kind) : undefined);
    const runs = await waitFor(find, { message: `a timer of ${kind} ms` });
    this.#held.set(kind, []);
    for (const run of runs) run();
  }
}

/** A user who has no browser here. */
function createCodeUser(t: ExecutionContext, world: LoginWorld, settings: LoginSettings = {}) {
  const clock = new HeldClock();
  const user = createUser(t, world.url, { clock, grant: 'device-code', ...settings });
  /** Lets the pause pass before the next request for tokens. */
  const poll = () => clock.end(INTERVAL_MS);
  return { ...user, clock, poll };
}

test('the code is asked for with client, scopes and resource, and the registration names the grant', async (t) => {
  const world = await startDeviceWorld(t);
  world.resource = { scopes_supported: ['read'] };
  const user = createCodeUser(t, world);
  const call = user.call();
  await user.poll();
  t.is((await call).body, 'served');
  const { parameters } = world.latest('/device');
  t.deepEqual(Object.fromEntries(parameters), {
    client_id: 'registered-client',
    scope: 'read',
    resource: world.server,
  });
  t.like(world.latest('/register').json, {
    grant_types: [DEVICE_GRANT, 'refresh_token'],
    response_types: [],
    scope: 'read',
  });
  t.false('redirect_uris' in world.latest('/register').json);
  t.like(Object.fromEntries(world.latest('/token').parameters), {
    grant_type: DEVICE_GRANT,
    device_code: 'device-1',
    client_id: 'registered-client',
    resource: world.server,
  });
  t.regex(
    user.log(),
    /within 10 min, open http:\/\/127\.0\.0\.1:\d+\/enter in any browser and enter the code WDJB-MJHT/,
  );
  t.false(user.log().includes('device-1'), 'the device code is as good as a password');
  t.is(world.count('/authorize'), 0);
});

test('the server is asked at its interval, and less often when it says so or is out of order', async (t) => {
  const world = await startDeviceWorld(t);
  world.refuseTokens = [PENDING, SLOW_DOWN, PENDING];
  const user = createCodeUser(t, world);
  const call = user.call();
  for (let asked = 0; asked < 4; asked += 1) await user.poll();
  t.is((await call).body, 'served');
  t.deepEqual(user.clock.pauses, [7000, 7000, 12_000, 12_000]);
  for (const fault of [{ status: 503, body: {} }, { status: 502, text: '<html>' }, 'reset'] as const) {
    const busy = await startDeviceWorld(t);
    busy.refuseTokens = [fault];
    const other = createCodeUser(t, busy);
    const another = other.call();
    for (let asked = 0; asked < 2; asked += 1) await other.poll();
    t.is((await another).body, 'served');
    t.deepEqual(other.clock.pauses, [7000, 12_000]);
  }
});

test('a user who refuses and a code that has expired end the login, and the error says so', async (t) => {
  for (const error of ['access_denied', 'expired_token']) {
    const world = await startDeviceWorld(t);
    world.refuseTokens = [PENDING, { status: 400, body: { error } }];
    const user = createCodeUser(t, world);
    const call = user.call();
    await user.poll();
    await user.poll();
    const { failure } = await call;
    t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
    t.true(failure?.message.includes(`gave no token (${error})`), failure?.message);
    t.is(world.count('/token'), 2);
  }
});

test('nobody is asked for longer than the code lasts', async (t) => {
  const world = await startDeviceWorld(t, { expires_in: 3 });
  const { failure } = await createCodeUser(t, world).call();
  t.regex(failure?.message ?? '', /Nobody has entered the code for \S+ within 3 s/);
  t.is(world.count('/token'), 0);
});

test('a call of a client that cannot wait fails with the code in its error, and the login goes on', async (t) => {
  const world = await startDeviceWorld(t);
  world.refuseTokens = [PENDING];
  const user = createCodeUser(t, world);
  const call = user.call();
  await user.poll();
  await user.clock.end(PATIENCE_MS);
  const { failure } = await call;
  t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
  t.regex(
    failure?.message ?? '',
    /open http:\S+\/enter in any browser and enter the code WDJB-MJHT\. Then try again\.$/,
  );
  const next = user.call();
  await waitFor(() => world.shown.length === 2 || undefined, { message: 'the second call' });
  await user.poll();
  t.is((await next).body, 'served');
  t.is(world.count('/device'), 1, 'one code for both calls');
});

/** A request of a client that can show a page, as it waits for the login. */
function refuseShowing(world: LoginWorld, login: Login, ask: AskUser) {
  const resourceMetadata = new URL(`${world.origin}${world.resourcePath}`);
  const challenge = { scheme: 'Bearer', resourceMetadata, error: undefined, scopes: [], dpop: undefined };
  const refused = { status: 401, challenge, headers: {}, url: world.url, authorization: undefined } as const;
  const refusal = { ...refused, peerAddress: '127.0.0.1', ask };
  return login.refused(refusal) as Promise<RenewalOutcome>;
}

test('a client that can show the page does so once for all its calls, which wait longer than others', async (t) => {
  const world = await startDeviceWorld(t, { verification_uri_complete: 'http://127.0.0.1/enter?code=WDJB-MJHT' });
  world.refuseTokens = [PENDING];
  const user = createCodeUser(t, world);
  const shown: UserPrompt[] = [];
  const show = async (prompt: UserPrompt): Promise<UserAnswer> => {
    shown.push(prompt);
    return 'accepted';
  };
  const calls = [1, 2, 3].map(() => refuseShowing(world, user.login, show));
  await user.poll();
  t.is(shown.length, 1);
  t.is(shown[0]?.url.href, 'http://127.0.0.1/enter?code=WDJB-MJHT');
  t.true(shown[0]?.message.includes('the code WDJB-MJHT'));
  t.false(user.clock.isHeld(PATIENCE_MS), 'no call is given up');
  await user.poll();
  for (const call of calls) t.deepEqual(await call, { kind: 'renewed' });
  t.is(await shown[0]?.over, 'logged-in');
});

test('a client that could not show the page waits as any other, and callers of serve are shown nothing', async (t) => {
  for (const waits of ['client', 'callers'] as const) {
    const world = await startDeviceWorld(t);
    const user = createCodeUser(t, world, { waits });
    let asked = 0;
    const fail = async (): Promise<UserAnswer> => {
      asked += 1;
      return 'unshown';
    };
    const call = refuseShowing(world, user.login, fail);
    await user.clock.end(PATIENCE_MS);
    t.is((await call).kind, 'failed');
    t.is(asked, waits === 'client' ? 1 : 0);
  }
});

test('callers of whom there may be several do not learn the code', async (t) => {
  const world = await startDeviceWorld(t);
  const user = createCodeUser(t, world, { waits: 'callers' });
  const call = user.call();
  await user.clock.end(PATIENCE_MS);
  const message = (await call).failure?.message ?? '';
  t.regex(message, /asks for a login, for which a code has to be entered that is in the log\. Try again later\.$/);
  t.false(message.includes('WDJB-MJHT'));
  await user.poll();
  t.is((await user.call()).body, 'served');
});

const HOSTILE: Readonly<Record<string, readonly [changes: Fields, expected: RegExp]>> = {
  'a code with control characters': [
    { user_code: 'AB\u001b[2J\nCD' },
    /user_code that is missing, longer than 64 characters or not printable/,
  ],
  'a code that shows as another one': [{ user_code: 'AB\u202eCD' }, /not printable/],
  'a code of any length': [{ user_code: 'A'.repeat(65) }, /longer than 64/],
  'no code': [{ user_code: undefined }, /user_code that is missing/],
  'no page': [{ verification_uri: undefined }, /verification_uri that is missing/],
  'a page of any length': [
    { verification_uri: `https://example.com/${'a'.repeat(500)}` },
    /verification_uri that is missing, no URL, or longer than 500/,
  ],
  'a page that is a script': [{ verification_uri: 'javascript:alert(1)' }, /but not over https/],
  'a page without https': [{ verification_uri: 'http://example.com/enter' }, /but not over https/],
  'a page with a password': [{ verification_uri: 'https://user:pass@example.com/' }, /user name or a password/],
  'a page with the code filled in, without https': [
    { verification_uri_complete: 'http://example.com/enter?c=1' },
    /but not over https/,
  ],
  'a device code of any size': [{ device_code: 'd'.repeat(20_000) }, /device_code of 20000 characters/],
};

for (const [what, [changes, expected]] of Object.entries(HOSTILE)) {
  test(`an authorization server that gives ${what} is refused before the user sees it`, async (t) => {
    const world = await startDeviceWorld(t, changes);
    const user = createCodeUser(t, world);
    const { failure } = await user.call();
    t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
    t.regex(failure?.message ?? '', expected);
    t.false(user.log().includes('enter the code'));
    t.is(world.count('/token'), 0);
  });
}

test('where no browser can be opened, a code is asked for if the authorization server offers that', async (t) => {
  const world = await startDeviceWorld(t);
  const user = createCodeUser(t, world, { grant: 'device-code-if-offered' });
  const call = user.call();
  await user.poll();
  t.is((await call).body, 'served');
  const without = await startLoginWorld(t);
  const other = createUser(t, without.url, { grant: 'device-code-if-offered' });
  t.is((await other.call()).body, 'served');
  t.is(without.count('/authorize'), 1);
});

test('an authorization server that offers no codes is named, with the way out', async (t) => {
  const world = await startLoginWorld(t);
  const { failure } = await createUser(t, world.url, { grant: 'device-code' }).call();
  t.regex(failure?.message ?? '', /offers no login with a code: its metadata has no device_authorization_endpoint/);
});

test('a registration for the browser is not used for codes, nor the reverse, and a forgotten one is made anew', async (t) => {
  const world = await startDeviceWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  const lose = (): void => {
    world.tokens.clear();
    world.refreshTokens.clear();
  };
  const logIn = async (): Promise<void> => {
    lose();
    const user = createCodeUser(t, world, { stateDirectory });
    const call = user.call();
    await user.poll();
    t.is((await call).body, 'served');
  };
  await logIn();
  t.is(world.count('/register'), 2);
  await logIn();
  t.is(world.count('/register'), 2, 'the one for codes is used again');
  const { answerDevice } = world;
  world.answerDevice = (asked) => {
    world.answerDevice = answerDevice;
    return asked.has('client_id') ? { status: 401, body: { error: 'invalid_client' } } : answerDevice(asked);
  };
  await logIn();
  t.is(world.count('/register'), 3);
});
