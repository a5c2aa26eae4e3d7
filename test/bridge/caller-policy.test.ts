import test from 'ava';
import {
  areKeptApart,
  type CallerPolicy,
  countSharers,
  describeCallers,
  haveNames,
} from '../../src/bridge/caller-policy.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';

interface Described {
  readonly callers: CallerPolicy;
  /** Two callers of one name may meet in a session. */
  readonly meet: boolean;
}

function describe(...argv: string[]): Described {
  const commandLine = parseCommandLine([...argv, '--', 'server']);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config } = parseConfig(commandLine, {
    env: { TOKEN: 'a-token-of-somebody', OTHER: 'a-token-of-another' },
    cwd: '/',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
  const [server] = config.servers;
  const callers = describeCallers(config.listener, server);
  return { callers, meet: !areKeptApart(callers, server.sessions) };
}

test('callers of this machine share sessions: they are one user', (t) => {
  const user = { callers: { kind: 'user', names: 'one' }, meet: true } as const;
  t.deepEqual(describe(), user);
  t.deepEqual(describe('--host', '::1'), user);
  t.deepEqual(describe('--base-url', 'http://localhost:9000/x'), user);
});

test('the client on a pipe is the only one', (t) => {
  t.deepEqual(describe('connect'), { callers: { kind: 'pipe', names: 'one' }, meet: true });
});

test('unidentified callers share nothing', (t) => {
  const unidentified = { callers: { kind: 'unidentified', names: 'one' }, meet: false } as const;
  t.deepEqual(describe('--host', '0.0.0.0', '--allow-anonymous'), unidentified);
  t.deepEqual(describe('--host', '192.168.1.5', '--allow-anonymous'), unidentified);
  t.deepEqual(describe('--base-url', 'https://tools.example'), unidentified, 'behind a reverse proxy on this machine');
});

test('unidentified callers share a server that the user wants to be shared by all', (t) => {
  t.true(describe('--host', '0.0.0.0', '--allow-anonymous', '--isolation', 'shared').meet);
});

test('callers with a name share with themselves only', (t) => {
  t.deepEqual(describe('--host', '0.0.0.0', '--auth-token', 'env:TOKEN'), {
    callers: { kind: 'named', names: 'one' },
    meet: true,
  });
});

test('several tokens, an issuer and mapped headers are several names, of which one may take half', (t) => {
  const named = describe('--auth-token', 'a=env:TOKEN', '--auth-token', 'b=env:OTHER').callers;
  t.deepEqual(named, { kind: 'named', names: 'several' });
  t.is(countSharers(named), 2);
  const mapped = describe('--map-header', 'X-User=USER_ENV').callers;
  t.deepEqual(mapped, { kind: 'user', names: 'several' });
  t.true(haveNames(mapped));
  const user = describe().callers;
  t.is(countSharers(user), 1);
  t.false(haveNames(user));
});
