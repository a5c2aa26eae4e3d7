import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { pino } from 'pino';
import { createMember } from '../../src/bridge/create-member.ts';
import type { DialedServer } from '../../src/bridge/served-server.ts';
import { StdioMembers } from '../../src/bridge/stdio-members.ts';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import { QueueSizes } from '../../src/collections/queue-sizes.ts';
import type { Listing, ServerConfig } from '../../src/config/server.ts';
import { BridgeError } from '../../src/errors.ts';
import { identifyCaller, mapCaller, principalOf } from '../../src/http/auth/callers.ts';
import { CALLER_HEADER } from '../../src/http/headers.ts';
import { BodyCapacity } from '../../src/http/server/read-body.ts';
import { createCalls } from '../support/calls.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeServer } from '../support/fake-server.ts';
import { configOf } from './config-of.ts';

const [DEFAULT] = configOf('--', 'server').servers;
const MEMBERSHIP = { prefix: 'a', alwaysShow: ['read'] };

function config(listing: Partial<Listing> = {}, more: Partial<ServerConfig> = {}): ServerConfig {
  const own = { name: 'a', segment: 'a', isRequired: false, callers: undefined, membership: MEMBERSHIP, ...listing };
  return { ...DEFAULT, listing: own, ...more };
}

const refuse = (): never => {
  throw new BridgeError('ERR_INTERNAL', 'not started here');
};
const NEVER = { running: undefined, start: refuse };

test('a member has the name, the prefix and the favorites of its entry', (t) => {
  const member = createMember(config(), NEVER);
  t.like(member, { name: 'a', ...MEMBERSHIP });
  t.is(createMember(config({ membership: undefined }), NEVER), undefined);
  t.is(createMember(DEFAULT, NEVER), undefined);
});

test('a member exists for its own callers only, also when headers have become a part of their names', (t) => {
  const everybody = createMember(config(), NEVER);
  t.true(everybody?.isFor(undefined));
  t.true(everybody?.isFor('anonymous'));
  const hers = createMember(config({ callers: ['token:alice'] }), NEVER);
  t.true(hers?.isFor('token:alice'));
  t.false(hers?.isFor('token:bob'));
  t.false(hers?.isFor(undefined));
  const request = { headersDistinct: { 'x-user': ['alice'] } } as unknown as IncomingMessage;
  identifyCaller(request, 'token:alice');
  mapCaller(request, [{ header: 'x-user', variable: 'x-user' }]);
  t.not(principalOf(request), 'token:alice');
  t.true(hers?.isFor(principalOf(request)));
});

test('whose token is to be exchanged is told to a member that exchanges tokens, and to no other', (t) => {
  const caller = { headers: { [CALLER_HEADER]: 'digest' }, environment: undefined };
  t.is(createMember(config(), NEVER)?.viewOf(caller).headers, undefined);
  const exchange = { issuer: 'https://issuer.example' } as NonNullable<ServerConfig['remote']['exchange']>;
  const exchanging = createMember(config({}, { remote: { ...DEFAULT.remote, exchange } }), NEVER);
  t.deepEqual(exchanging?.viewOf(caller), { headers: { [CALLER_HEADER]: 'digest' }, environment: undefined });
});

/** Members of a bridge on stdio, whose servers are no processes. */
function membersOf(...dialed: (() => FakeServer)[]) {
  const closed: FakeServer[] = [];
  const clock = new FakeClock();
  const deps = { ...createSystemDeps(pino({ level: 'silent' })), clock };
  const next = [...dialed];
  const dial = async (): Promise<DialedServer> => {
    const fake = (next.shift() ?? refuse)();
    return {
      ...{ sessionDialers: fake, callDialers: fake, callerTokens: undefined, calls: createCalls(clock) },
      ...{ bodies: new BodyCapacity(1024).share(undefined), processes: { running: 0, failed: 0 } },
      ...{
        ownMarks: () => [],
        replicated: undefined,
        queues: new QueueSizes(),
        close: async () => void closed.push(fake),
      },
    };
  };
  return { members: new StdioMembers([config(), config({ membership: undefined })], dial, deps), closed };
}

const OVER = new BridgeError('ERR_SESSION_CLOSED', 'the test is over');

test('a member on stdio is started by its first caller, once, and after a failure by the next', async (t) => {
  const fake = new FakeServer();
  const { members, closed } = membersOf(refuse, () => fake);
  const [member, ...others] = members.all;
  t.deepEqual(others, []);
  if (member === undefined) return t.fail();
  await t.throwsAsync(() => member.start(), { message: 'not started here' });
  const [one, other] = await Promise.all([member.start(), member.start()]);
  t.is(one, other);
  t.is(await member.start(), one);
  await members.close(OVER);
  t.deepEqual(closed, [fake]);
  await t.throwsAsync(() => member.start(), { code: 'ERR_SESSION_CLOSED' });
});

test('a member on stdio that is being started as the bridge ends is ended, too', async (t) => {
  const fake = new FakeServer();
  const { members, closed } = membersOf(() => fake);
  const starting = members.all[0]?.start();
  await members.close(OVER);
  await starting;
  t.deepEqual(closed, [fake]);
});
