/** Tokens of callers that become tokens of a server, at an authorization server on this machine. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { decodeJwt, type JWTPayload } from 'jose';
import { pino } from 'pino';
import type { ExchangeConfig } from '../../../src/config/remote.ts';
import { BridgeError } from '../../../src/errors.ts';
import { readCallerToken } from '../../../src/http/auth/caller-token.ts';
import type { CredentialRefusal, Credentials, RenewalOutcome } from '../../../src/http/client/credentials.ts';
import { CALLER_HEADER } from '../../../src/http/headers.ts';
import { ExchangedTokens, MAX_CALLERS } from '../../../src/http/login/exchange-token.ts';
import { ACCESS_TOKEN, type ExchangeWorld, startExchangeWorld } from '../../support/exchange-world.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { createIssuerClient, inSeconds } from '../../support/fake-issuer.ts';
import { waitFor } from '../../support/wait-for.ts';
import { temporaryFolder } from './logged-in.ts';

const SERVER = new URL('https://tools.example/mcp');

/** What callers of one server are given. */
class Callers {
  readonly clock = new FakeClock();
  readonly log: string[] = [];
  readonly world: ExchangeWorld;
  readonly tokens: ExchangedTokens;

  constructor(t: ExecutionContext, world: ExchangeWorld, config: Partial<ExchangeConfig> = {}) {
    this.world = world;
    const secret = world.env.MCP_PORTAGE_OAUTH_CLIENT_SECRET;
    const { clock } = this;
    const startedMs = Date.now() - clock.now();
    this.tokens = new ExchangedTokens({
      server: SERVER,
      http: createIssuerClient(t, clock),
      config: {
        issuer: world.issuer,
        client: { id: 'bridge', proof: { kind: 'secret', secret } },
        ...{ tokenEndpoint: undefined, authMethod: undefined, scopes: [], resource: { kind: 'server' } },
        extraParameters: new Map(),
        ...config,
      },
      deps: {
        clock,
        wallClock: () => startedMs + clock.now(),
        log: pino({ level: 'trace' }, { write: (line: string) => void this.log.push(line) }),
      },
    });
    t.teardown(() => this.tokens.close());
  }

  /** The credentials for a request that comes with such a token. */
  async arrive(subject: string, claims: JWTPayload = {}): Promise<Credentials> {
    const token = await this.world.tokenOf(subject, claims);
    const shown = readCallerToken(token, `${this.world.issuer}#${subject}`);
    if (shown === undefined) throw new Error('the token says who it is of');
    this.tokens.note(shown);
    return this.tokens.of({ [CALLER_HEADER]: shown.caller });
  }

  /** What a request of the caller would show; rejects with why there is nothing. */
  async show(subject: string, claims?: JWTPayload): Promise<string | undefined> {
    return show(await this.arrive(subject, claims));
  }
}

function shownBy(credentials: Credentials): string | undefined {
  return credentials.show('POST', SERVER)?.authorization;
}

async function show(credentials: Credentials): Promise<string | undefined> {
  await credentials.renewal?.beforeRequest();
  return shownBy(credentials);
}

async function refusal(t: ExecutionContext, showing: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(showing, { instanceOf: BridgeError });
  t.is((error as BridgeError).code, 'ERR_UPSTREAM_AUTH');
  return error?.message ?? '';
}

const REFUSAL: CredentialRefusal = {
  status: 401,
  challenge: { scheme: 'Bearer', resourceMetadata: undefined, error: 'invalid_token', scopes: [], dpop: undefined },
  headers: {},
  url: SERVER,
  authorization: undefined,
  peerAddress: undefined,
};

/** The server has refused this. */
function refuse(credentials: Credentials, authorization: string | undefined): Promise<RenewalOutcome> | undefined {
  return credentials.renewal?.refused({ ...REFUSAL, authorization });
}

test('a token is exchanged once, and again before the exchanged one expires', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const first = await callers.show('ada', { exp: inSeconds(3600) });
  t.is(await callers.show('ada', { exp: inSeconds(3600) }), first);
  t.like(decodeJwt(first?.replace('Bearer ', '') ?? ''), { sub: 'ada', aud: SERVER.href });
  callers.clock.advance(271_000);
  t.not(await callers.show('ada', { exp: inSeconds(3600) }), first);
  t.is(world.asked.length, 2);
});

test('calls that come at once wait for one exchange of their caller, and not for that of others', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  let release = (): void => {};
  world.before = new Promise((resolve) => {
    release = resolve;
  });
  const names = Array.from({ length: 20 }, (_, index) => `caller-${index}`);
  const shown = Promise.all([...names, ...names, ...names].map((name) => callers.show(name)));
  await waitFor(() => world.asked.length === 20);
  release();
  const all = await shown;
  t.is(new Set(all).size, 20);
  t.deepEqual(all.slice(0, 20), all.slice(20, 40));
  t.is(world.asked.length, 20);
  t.deepEqual(world.atOnce, { ofOne: 1, ofAll: 20 });
});

test('a caller is the subject, the client and the scope of its token', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const all: JWTPayload[] = [
    {},
    { client_id: 'other' },
    { scope: 'call more' },
    { client_id: undefined, azp: 'third' },
  ];
  const shown = await Promise.all(all.map((claims) => callers.show('ada', claims)));
  t.is(new Set(shown).size, all.length);
  t.is(await callers.show('ada', { scope: 'more call' }), shown[2], 'the order of scopes means nothing');
});

test('a token that the caller renews takes the exchanged one with it, and an older one does not bring it back', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const older = { iat: world.startedAt - 100 };
  const first = await callers.show('ada', older);
  const second = await callers.show('ada');
  t.not(second, first);
  t.is(await callers.show('ada', older), second, 'two devices of a caller do not make one exchange after the other');
  t.is(world.asked.length, 2);
});

test('what is exchanged while the caller renews its token is not used', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  let release = (): void => {};
  world.before = new Promise((resolve) => {
    release = resolve;
  });
  const first = callers.show('ada', { iat: world.startedAt - 100 });
  await waitFor(() => world.asked.length === 1);
  const second = callers.show('ada', { jti: 'renewed' });
  // It has come when another one is noted after it.
  await callers.arrive('ada', { jti: 'renewed' });
  release();
  t.is(await first, await second);
  t.is(world.asked.length, 2);
  t.is(world.asked[1]?.caller.jti, 'renewed');
});

test('a token that has expired takes the exchanged one with it', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const credentials = await callers.arrive('ada', { exp: inSeconds(60) });
  t.truthy(await show(credentials));
  callers.clock.advance(91_000);
  t.regex(await refusal(t, show(credentials)), /^No token of this caller is known/);
  t.is(refuse(credentials, 'Bearer other'), undefined);
  t.is(world.asked.length, 1, 'nobody is asked with it');
  t.truthy(
    await callers.show('ada', { iat: world.startedAt - 60, exp: inSeconds(200) }),
    'any token that lasts is better',
  );
});

test('a token that the server refuses is exchanged anew once, and then the refusal is told', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const credentials = await callers.arrive('ada');
  const first = await show(credentials);
  t.deepEqual(await Promise.all([refuse(credentials, first), refuse(credentials, first)]), [
    { kind: 'renewed' },
    { kind: 'renewed' },
  ]);
  const second = shownBy(credentials);
  t.not(second, first);
  t.deepEqual(await refuse(credentials, first), { kind: 'renewed' }, 'a late refusal of the first one');
  const outcome = await refuse(credentials, second);
  t.is(outcome?.kind, 'failed');
  t.regex(
    outcome?.kind === 'failed' ? outcome.error.message : '',
    /does not accept the token that .* gave in exchange/,
  );
  t.is(world.asked.length, 2);
  t.is(shownBy(credentials), second, 'it may be good for something else');
  callers.clock.advance(11_000);
  t.deepEqual(await refuse(credentials, second), { kind: 'renewed' });
  const challenge = { ...REFUSAL.challenge, error: 'insufficient_scope', scopes: ['more'] };
  const forbidden = { ...REFUSAL, status: 403, challenge, authorization: second } as const;
  t.is(credentials.renewal?.refused(forbidden), undefined, 'another token would allow as little');
});

test('a refused exchange is told to its caller for a while, and to no other', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const error = { error: 'invalid_grant', error_description: 'the session\nis \u202eover' };
  world.next.push({ status: 400, body: error });
  const told = await refusal(t, callers.show('ada'));
  t.regex(
    told,
    /does not exchange the token of this caller for one of https:\/\/tools\.example\/mcp \(invalid_grant: the session is over\)/,
  );
  t.is(await refusal(t, callers.show('ada')), told);
  t.is(world.asked.length, 1);
  t.truthy(await callers.show('bob'));
  callers.clock.advance(11_000);
  t.truthy(await callers.show('ada'));
  world.next.push({ status: 400, body: error });
  t.is(await callers.show('ada'), await callers.show('ada', { iat: world.startedAt - 5 }));
});

test('a token that the caller renews ends the pause after a refused exchange', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  world.next.push({ status: 400, body: { error: 'invalid_grant' } });
  await refusal(t, callers.show('ada', { iat: world.startedAt - 10 }));
  t.truthy(await callers.show('ada'));
});

test('calls wait while the authorization server is out of order, and fail in time', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  world.next.push({ status: 503, headers: { 'retry-after': '7' } }, 'reset', { status: 200, text: '<html>' });
  const showing = callers.show('ada');
  for (const pauseMs of [7000, 2000, 4000]) {
    const before = callers.log.length;
    await waitFor(() => callers.log.length > before || world.next.length === 0);
    await waitFor(() => callers.log.length > 0);
    await untilPausing(callers);
    callers.clock.advance(pauseMs);
  }
  t.truthy(await showing);
  t.is(world.asked.length, 4);

  await world.stop();
  callers.clock.advance(20 * 60_000);
  let isOver = false;
  const failing = refusal(t, callers.show('bob', { exp: inSeconds(7200) })).finally(() => {
    isOver = true;
  });
  await waitFor(() => {
    callers.clock.advance(1000);
    return isOver;
  });
  t.regex(await failing, /^The token of this caller could not be exchanged for one of https:\/\/tools\.example\/mcp: /);
  await world.restart();
  t.truthy(await callers.show('bob', { exp: inSeconds(7200) }), 'no pause follows');
});

/** The clock has something to wait for. */
async function untilPausing({ log, world }: Callers): Promise<void> {
  await waitFor(() => log.filter((line) => line.includes('is tried again')).length >= world.asked.length);
}

const HOSTILE: readonly (readonly [what: string, change: Record<string, unknown>, told: RegExp])[] = [
  ['line breaks', { access_token: 'a\r\nX-Evil: 1' }, /holds something that is no bearer token/],
  ['no end', { access_token: 'a'.repeat(100_000) }, /has 100000 characters, more than the 16384/],
  ['nothing', { access_token: '' }, /is empty|did not answer as OAuth has it/],
  ['no text', { access_token: { a: 1 } }, /did not answer as OAuth has it/],
  [
    'another type',
    { issued_token_type: 'urn:ietf:params:oauth:token-type:saml2' },
    /of the type urn:ietf:params:oauth:token-type:saml2/,
  ],
  ['a type that is no text', { issued_token_type: ['x'] }, /without a type/],
  ['another kind of use', { token_type: 'N_A' }, /a token of another kind/],
];

for (const [what, change, told] of HOSTILE) {
  test(`a token with ${what} is not used, and not shown`, async (t) => {
    const world = await startExchangeWorld(t);
    const callers = new Callers(t, world);
    world.answer = (usual) => ({ status: 200, body: { ...usual, ...change } });
    const message = await refusal(t, callers.show('ada'));
    t.regex(message, told);
    t.false(/X-Evil|aaaa/.test(message + callers.log.join('')));
  });
}

test('members that are null or missing mean what was asked for', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  world.answer = (usual) => ({
    status: 200,
    body: { ...usual, token_type: null, issued_token_type: null, expires_in: null },
  });
  const first = await callers.show('ada', { exp: inSeconds(7200) });
  callers.clock.advance(3_600_000);
  t.is(await callers.show('ada', { exp: inSeconds(7200) }), first);
});

test('an exchange is not redirected to another server', async (t) => {
  const [world, other] = await Promise.all([startExchangeWorld(t), startExchangeWorld(t)]);
  const callers = new Callers(t, world);
  world.next.push({ status: 307, headers: { location: `${other.issuer}/token` } });
  t.regex(await refusal(t, callers.show('ada')), /answered 307/);
  t.is(other.asked.length, 0);
});

test('metadata of another issuer is not used, and a token endpoint can be named in its place', async (t) => {
  const [world, other] = await Promise.all([startExchangeWorld(t), startExchangeWorld(t)]);
  const issuer = `${world.issuer}/none`;
  t.regex(await refusal(t, new Callers(t, world, { issuer }).show('ada')), /Name it with --oauth-token-endpoint/);
  const tokenEndpoint = new URL(`${world.issuer}/token`);
  t.truthy(await new Callers(t, world, { issuer, tokenEndpoint }).show('ada'));
  const elsewhere = new Callers(t, other, { issuer: other.issuer.replace('127.0.0.1', 'localhost') });
  t.regex(await refusal(t, elsewhere.show('ada')), /its issuer is/);
});

test('audience, resource, scope and other parameters are what the user says', async (t) => {
  const world = await startExchangeWorld(t);
  const asked = async (config: Partial<ExchangeConfig>) => {
    await new Callers(t, world, config).show('ada');
    return Object.fromEntries(world.asked.at(-1)?.parameters ?? []);
  };
  const usual = await asked({});
  t.like(usual, { audience: SERVER.href, resource: SERVER.href, requested_token_type: ACCESS_TOKEN });
  t.like(usual, { subject_token_type: ACCESS_TOKEN, scope: undefined });
  t.like(await asked({ resource: { kind: 'named', uri: 'urn:tools' }, scopes: ['a', 'b'] }), {
    ...{ audience: 'urn:tools', resource: 'urn:tools', scope: 'a b' },
  });
  const extraParameters = new Map([['audience', 'tools-api']]);
  t.like(await asked({ resource: { kind: 'left-out' }, extraParameters }), {
    ...{ audience: 'tools-api', resource: undefined },
  });
});

test('the client authenticates with its secret or its key, and a wrong one is told', async (t) => {
  const world = await startExchangeWorld(t);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const file = join(temporaryFolder(t), 'key.pem');
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const withKey = new Callers(t, world, { client: { id: 'bridge', proof: { kind: 'key', file } } });
  t.regex(await refusal(t, withKey.show('ada')), /Check the id and the secret of the client/);
  t.like(decodeJwt(world.asked[0]?.parameters.get('client_assertion') ?? ''), { iss: 'bridge', sub: 'bridge' });
  const wrong = new Callers(t, world, { client: { id: 'bridge', proof: { kind: 'secret', secret: 'hunter2' } } });
  const message = await refusal(t, wrong.show('ada'));
  t.regex(message, /invalid_client/);
  t.notRegex(message + wrong.log.join(''), /hunter2/);
});

test('what no caller has asked for is shown nothing', async (t) => {
  const callers = new Callers(t, await startExchangeWorld(t));
  t.regex(await refusal(t, show(callers.tokens.of(undefined))), /^No token of this caller is known/);
  t.regex(await refusal(t, show(callers.tokens.of({ [CALLER_HEADER]: 'x' }))), /^No token/);
});

test('of too many callers the one heard of longest ago makes way', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const claims = { iat: world.startedAt };
  t.truthy(await callers.show('ada', claims));
  const shown = readCallerToken(await world.tokenOf('x'), `${world.issuer}#x`);
  if (shown === undefined) throw new Error('the token says who it is of');
  for (let index = 0; index < MAX_CALLERS - 1; index += 1) callers.tokens.note({ ...shown, caller: `${index}` });
  t.truthy(await callers.show('ada', claims));
  t.is(world.asked.length, 1, 'the last one was heard of just now');
  for (let index = 0; index < MAX_CALLERS; index += 1) callers.tokens.note({ ...shown, caller: `${index}` });
  t.truthy(await callers.show('ada', claims));
  t.is(world.asked.length, 2);
});

test('the end of the bridge ends exchanges, and what was exchanged is used for last words', async (t) => {
  const world = await startExchangeWorld(t);
  const callers = new Callers(t, world);
  const ada = await callers.arrive('ada');
  const shown = await show(ada);
  world.before = new Promise(() => {});
  const bob = await callers.arrive('bob');
  const waiting = bob.renewal?.beforeRequest();
  await waitFor(() => world.asked.length === 2);
  callers.tokens.close();
  await waiting;
  t.throws(() => shownBy(bob), { message: /shutting down/ });
  t.is(shownBy(ada), shown);
});
