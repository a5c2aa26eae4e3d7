import test from 'ava';
import type { MappedHeader } from '../../src/config/access.ts';
import { collectHeaders, environmentOfMember, headersOfMember } from '../../src/config/aggregate.ts';
import type { ForwardedHeader } from '../../src/config/remote.ts';
import type { ServerConfig } from '../../src/config/server.ts';
import { isForwardable } from '../../src/http/headers.ts';
import { configOf } from '../bridge/config-of.ts';

const [DEFAULT] = configOf('--', 'server').servers;
const AGGREGATE: ServerConfig = { ...DEFAULT, target: { kind: 'aggregate', shows: 'all' } };

interface Shown {
  readonly forwarded?: readonly ForwardedHeader[];
  readonly mapped?: readonly MappedHeader[];
  readonly isMember?: boolean;
}

function server(name: string, { forwarded = [], mapped = [], isMember = true }: Shown): ServerConfig {
  const membership = isMember ? { prefix: name, alwaysShow: [] } : undefined;
  return {
    ...DEFAULT,
    listing: { name, segment: name, isRequired: false, callers: undefined, membership },
    mapHeaders: mapped,
    remote: { ...DEFAULT.remote, forwardHeaders: forwarded },
  };
}

/** The headers that the aggregate takes from a request that has all of them, with `<name>'s value` each. */
function taken({ remote }: ServerConfig): Readonly<Record<string, string>> {
  return Object.fromEntries(remote.forwardHeaders.map(({ name, sentAs }) => [sentAs, `${name}'s value`]));
}

test('each member is shown its own headers, by its own names', (t) => {
  const one = server('one', {
    forwarded: [
      { name: 'x-user', sentAs: 'x-user' },
      { name: 'x-key', sentAs: 'authorization' },
    ],
  });
  const other = server('other', { forwarded: [{ name: 'x-token', sentAs: 'authorization' }] });
  const none = server('none', {});
  const headers = taken(collectHeaders(AGGREGATE, [one, other, none]));
  t.deepEqual(headersOfMember(headers, one), { 'x-user': "x-user's value", authorization: "x-key's value" });
  t.deepEqual(headersOfMember(headers, other), { authorization: "x-token's value" });
  t.is(headersOfMember(headers, none), undefined);
  t.is(headersOfMember(undefined, one), undefined);
});

test('a server that is not part of the aggregate makes it take nothing', (t) => {
  const left = server('left', { forwarded: [{ name: 'x-user', sentAs: 'x-user' }], isMember: false });
  const { remote, mapHeaders } = collectHeaders(AGGREGATE, [left, server('one', {})]);
  t.deepEqual(remote.forwardHeaders, []);
  t.deepEqual(mapHeaders, []);
});

test('Authorization passes to the member that names it by another name, and to no other', (t) => {
  const one = server('one', { forwarded: [{ name: 'authorization', sentAs: 'x-caller-token' }] });
  const other = server('other', { forwarded: [{ name: 'x-user', sentAs: 'x-user' }] });
  const { remote } = collectHeaders(AGGREGATE, [one, other]);
  t.true(remote.forwardHeaders.every(isForwardable));
  const headers = taken(collectHeaders(AGGREGATE, [one, other]));
  t.deepEqual(headersOfMember(headers, one), { 'x-caller-token': "authorization's value" });
  t.deepEqual(headersOfMember(headers, other), { 'x-user': "x-user's value" });
});

test('variables of the same name may come from different headers', (t) => {
  const one = server('one', { mapped: [{ header: 'x-user', variable: 'USER_NAME' }] });
  const other = server('other', {
    mapped: [
      { header: 'x-login', variable: 'USER_NAME' },
      { header: 'x-user', variable: 'WHO' },
    ],
  });
  const { mapHeaders } = collectHeaders(AGGREGATE, [one, other]);
  t.deepEqual(
    mapHeaders.map(({ header }) => header),
    ['x-user', 'x-login'],
  );
  const environment = Object.fromEntries(mapHeaders.map(({ header, variable }) => [variable, `${header}'s value`]));
  t.deepEqual(environmentOfMember(environment, one), { USER_NAME: "x-user's value" });
  t.deepEqual(environmentOfMember(environment, other), { USER_NAME: "x-login's value", WHO: "x-user's value" });
  t.deepEqual(environmentOfMember({}, one), {});
  t.is(environmentOfMember(environment, server('none', {})), undefined);
});

test('what was collected once is not collected again', (t) => {
  const one = server('one', { forwarded: [{ name: 'x-user', sentAs: 'x-user' }] });
  const once = collectHeaders(AGGREGATE, [one]);
  t.deepEqual(collectHeaders(once, [once, one]), once);
});
