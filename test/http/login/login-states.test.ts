/** What a login does with what it knows, where no authorization server has to be asked. */
import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { CredentialRefusal, RenewalOutcome } from '../../../src/http/client/credentials.ts';
import { FAILURE_PAUSE_MS, Login } from '../../../src/http/login/login.ts';
import type { LoginStorage } from '../../../src/http/login/login-storage.ts';
import type { StoredLogin, Tokens } from '../../../src/http/login/login-store.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createClient } from '../recorded-call.ts';
import { NO_OPTIONS } from './login-config.ts';

/** Asks for a login that nobody may make: a token would be sent where everybody can read it. */
const OPEN_SERVER = new URL('http://mcp.example/mcp');
const METADATA = new URL('http://mcp.example/metadata');
const RENEWED: RenewalOutcome = { kind: 'renewed' };

function stored(accessToken: string, more: Partial<Tokens> = {}): StoredLogin {
  return {
    issuer: 'https://auth.example',
    tokenEndpoint: 'https://auth.example/token',
    resource: 'http://mcp.example/mcp',
    client: {
      origin: 'registered',
      id: 'c',
      method: 'none',
      secret: undefined,
      callback: undefined,
      scopes: undefined,
      areTokensBound: false,
    },
    scopes: ['read'],
    tokens: {
      ...{ accessToken, hasIdToken: false, refreshToken: undefined, renewAtMs: undefined, scopes: undefined },
      key: undefined,
      ...more,
    },
  };
}

class FakeStorage implements LoginStorage {
  readonly place = undefined;
  login: StoredLogin | undefined;
  /** What others have stored, and this process has not looked at. */
  unseen: StoredLogin | undefined;
  turns = 0;
  /** What whoever wants a turn gets instead. */
  failure: BridgeError | undefined;

  load(): StoredLogin | undefined {
    return this.login;
  }

  async look(): Promise<void> {
    this.login = this.unseen ?? this.login;
  }

  async save(login: StoredLogin): Promise<void> {
    this.login = login;
  }

  async forget(): Promise<void> {
    this.login = undefined;
  }

  async exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    this.turns += 1;
    if (this.failure !== undefined) throw this.failure;
    await this.look();
    return work();
  }
}

function open(login?: StoredLogin) {
  const storage = new FakeStorage();
  storage.login = login;
  const clock = new FakeClock();
  const { log, entries } = collectLog();
  let now = 1000;
  const own = new Login({
    server: OPEN_SERVER,
    config: { ...NO_OPTIONS, stateDirectory: undefined },
    storage,
    createClient: () => createClient({ clock }),
    openBrowser: () => {},
    askToPaste: undefined,
    waits: 'client',
    registered: () => {},
    waiting: () => {},
    deps: { log, clock, wallClock: () => now, randomId: () => 'id' },
  });
  const at = (wallMs: number): void => {
    now = wallMs;
  };
  return { login: own, storage, clock, entries, at };
}

function refusal(change: Partial<CredentialRefusal> = {}, scopes: readonly string[] = []): CredentialRefusal {
  const challenge = { scheme: 'Bearer', resourceMetadata: METADATA, error: undefined, scopes, dpop: undefined };
  const usual = { status: 401, challenge, headers: {}, url: OPEN_SERVER } as const;
  return { ...usual, authorization: undefined, peerAddress: undefined, ...change };
}

const lacking = (scopes: readonly string[], authorization = 'Bearer a'): CredentialRefusal => ({
  ...refusal({ status: 403, authorization }),
  challenge: { scheme: 'Bearer', resourceMetadata: METADATA, error: 'insufficient_scope', scopes, dpop: undefined },
});

const shownBy = (login: Login): string | undefined => login.show('POST', OPEN_SERVER)?.authorization;

test('the stored token is shown, and without one none', (t) => {
  t.is(shownBy(open(stored('a')).login), 'Bearer a');
  t.is(shownBy(open().login), undefined);
  t.is(shownBy(open({ ...stored('a'), tokens: undefined }).login), undefined, 'a registration is no token');
});

test('a request waits for nothing where the token is good, or nothing can be done about it', (t) => {
  t.is(open().login.beforeRequest(), undefined);
  t.is(open(stored('a')).login.beforeRequest(), undefined, 'nobody knows how long it is good');
  const early = open(stored('a', { renewAtMs: 5000, refreshToken: 'r' }));
  early.at(4999);
  t.is(early.login.beforeRequest(), undefined);
  const late = open(stored('a', { renewAtMs: 5000 }));
  late.at(5000);
  t.is(late.login.beforeRequest(), undefined, 'there is no refresh token');
  t.is(late.storage.turns, 0);
});

test('a token that is due is renewed before the request, and what another process has stored is used', async (t) => {
  const { login, storage, clock, at } = open(stored('a', { renewAtMs: 5000, refreshToken: 'r' }));
  at(5000);
  storage.login = stored('b');
  t.is(login.lastUnderWayMs, undefined);
  clock.advance(1000);
  const [first, second] = [login.beforeRequest(), login.beforeRequest()];
  t.is(login.lastUnderWayMs, 1000);
  t.not(first, undefined);
  t.not(second, undefined, 'whoever comes meanwhile waits as well');
  await Promise.all([first, second]);
  clock.advance(1000);
  t.is(login.lastUnderWayMs, 1000, 'it is over');
  t.is(shownBy(login), 'Bearer b');
  t.is(storage.turns, 1);
});

test('a token that could not be renewed ahead of time is not tried again, and is used on', async (t) => {
  const { login, storage, at } = open(stored('a', { renewAtMs: 5000, refreshToken: 'r' }));
  at(5000);
  storage.failure = new BridgeError('ERR_CLUSTER_TURN', 'another is at it');
  await login.beforeRequest();
  t.is(storage.turns, 1);
  t.is(login.beforeRequest(), undefined);
  t.is(shownBy(login), 'Bearer a');
});

test('a refusal that is not about the token stands', (t) => {
  const { login, storage } = open(stored('a'));
  t.is(login.refused(refusal({ status: 403, authorization: 'Bearer a' })), undefined);
  t.is(storage.turns, 0);
});

test('a refusal of an earlier token is no reason for another login', async (t) => {
  const { login, storage } = open(stored('b'));
  t.deepEqual(await login.refused(refusal({ authorization: 'Bearer a' })), RENEWED);
  t.is(storage.turns, 0);
});

test('where another process has logged in meanwhile, its token is taken', async (t) => {
  const { login, storage } = open(stored('a'));
  storage.login = stored('b');
  t.deepEqual(await login.refused(refusal({ authorization: 'Bearer a' })), RENEWED);
  t.is(shownBy(login), 'Bearer b');
});

test('a server that offers no login is told on, and asked again with the next call', async (t) => {
  const { login, storage, entries } = open();
  const without = refusal();
  const challenge = { ...without.challenge, resourceMetadata: undefined };
  for (let count = 1; count <= 2; count += 1) {
    t.deepEqual(await login.refused({ ...without, challenge }), { kind: 'refused' });
    t.is(storage.turns, count);
  }
  t.like(entries.at(-1), {
    level: 20,
    status: 401,
    msg: 'no login is offered by the server at http://mcp.example/mcp',
  });
});

test('those who need a login that is under way wait for its outcome', async (t) => {
  const { login, storage, clock } = open();
  const outcomes = [login.refused(refusal()), login.refused(refusal())];
  t.is(login.lastUnderWayMs, clock.now());
  const [first, second] = await Promise.all(outcomes);
  t.is(first, second);
  t.is(first?.kind, 'failed');
  t.is(storage.turns, 1);
});

test('a login that fails says so, and those who ask within the pause get the same answer', async (t) => {
  const { login, storage, clock, entries } = open();
  clock.advance(1_000_000);
  const first = await login.refused(refusal());
  if (first?.kind !== 'failed') return t.fail();
  t.is(first.error.code, 'ERR_UPSTREAM_AUTH');
  t.regex(first.error.message, /^The server at http:\/\/mcp\.example\/mcp asks for a login, but anybody.*Use https\.$/);
  t.like(entries.at(-1), { level: 50, code: 'ERR_UPSTREAM_AUTH', msg: first.error.message });
  clock.advance(FAILURE_PAUSE_MS - 1);
  t.is(await login.refused(refusal()), first);
  t.is(storage.turns, 1);
  clock.advance(1);
  t.is((await login.refused(refusal()))?.kind, 'failed');
  t.is(storage.turns, 2);
});

test('another problem than that of the login is explained as that of the login', async (t) => {
  const { login, storage } = open();
  storage.failure = new BridgeError('ERR_UPSTREAM_CONNECT', 'connect ECONNREFUSED');
  const outcome = await login.refused(refusal());
  if (outcome?.kind !== 'failed') return t.fail();
  t.is(outcome.error.code, 'ERR_UPSTREAM_AUTH');
  t.regex(outcome.error.message, /^The login for http:\/\/mcp\.example\/mcp came to nothing: connect ECONNREFUSED\./);
});

for (const code of ['ERR_STORE_UNAVAILABLE', 'ERR_CLUSTER_TURN'] as const) {
  test(`where nobody was asked for anything there is no pause: ${code}`, async (t) => {
    const { login, storage } = open();
    const failure = new BridgeError(code, 'not now');
    storage.failure = failure;
    t.deepEqual(await login.refused(refusal()), { kind: 'failed', error: failure });
    await login.refused(refusal());
    t.is(storage.turns, 2);
  });
}

test('a refresh ahead of time does not end the pause after a login that failed', async (t) => {
  const { login, storage, at } = open(stored('a', { renewAtMs: 5000, refreshToken: 'r' }));
  const failed = await login.refused(lacking(['write']));
  t.is(failed?.kind, 'failed');
  at(5000);
  storage.login = stored('b');
  await login.beforeRequest();
  t.is(await login.refused(refusal({ authorization: 'Bearer b' })), failed);
});

test('scopes are asked for once, whatever their order', async (t) => {
  const { login, storage, clock } = open(stored('a'));
  t.is((await login.refused(lacking(['write', 'admin'])))?.kind, 'failed');
  clock.advance(FAILURE_PAUSE_MS);
  t.is(login.refused(lacking(['admin', 'write'])), undefined);
  t.is(storage.turns, 1);
  t.is((await login.refused(lacking(['write'])))?.kind, 'failed');
  t.is(storage.turns, 2);
});

test('a server that names other scopes each time is asked for so many and no more', async (t) => {
  const { login, storage, clock } = open(stored('a'));
  for (let count = 0; count < 16; count += 1) {
    t.is((await login.refused(lacking([`scope-${count}`])))?.kind, 'failed');
    clock.advance(FAILURE_PAUSE_MS);
  }
  t.is(login.refused(lacking(['scope-16'])), undefined);
  t.is(storage.turns, 16);
});

test('after the end nothing is renewed, and a login that is under way ends quietly', async (t) => {
  const { login, storage, entries } = open();
  const outcome = login.refused(refusal());
  const before = entries.length;
  login.close();
  login.close();
  t.like(await outcome, { kind: 'failed', error: { code: 'ERR_SESSION_CLOSED' } });
  t.is(entries.length, before);
  t.is(login.refused(refusal()), undefined);
  t.is(storage.turns, 1);
});
