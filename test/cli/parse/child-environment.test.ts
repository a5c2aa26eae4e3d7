import test from 'ava';
import {
  type ChildEnvironmentRequest,
  composeChildEnvironment,
} from '../../../src/cli/parse/servers/child-environment.ts';

function compose(request: Partial<ChildEnvironmentRequest>) {
  return composeChildEnvironment({
    ours: {},
    inheritAll: false,
    assignments: [],
    withheldAlways: [],
    platform: 'linux',
    ...request,
  });
}

test('passes what programs need to start and withholds the rest by name', (t) => {
  const { env, withheld } = compose({
    ours: {
      PATH: '/bin',
      HOME: '/home/me',
      LC_ALL: 'C.UTF-8',
      XDG_CONFIG_HOME: '/home/me/.config',
      https_proxy: 'http://proxy:3128',
      NODE_EXTRA_CA_CERTS: '/ca.pem',
      GITHUB_TOKEN: 'ghp_secret',
      AWS_SECRET_ACCESS_KEY: 'secret',
      NODE_OPTIONS: '--inspect',
      path: 'not the PATH of a POSIX system',
    },
  });
  t.deepEqual(Object.keys(env).sort(), [
    'HOME',
    'LC_ALL',
    'NODE_EXTRA_CA_CERTS',
    'PATH',
    'XDG_CONFIG_HOME',
    'https_proxy',
  ]);
  t.deepEqual(withheld, ['AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN', 'NODE_OPTIONS', 'path']);
});

test('passes the settings of npm but no login', (t) => {
  const { env, withheld } = compose({
    ours: {
      npm_config_registry: 'https://npm.example.com/',
      NPM_CONFIG_CACHE: '/cache',
      'npm_config_//npm.example.com/:_authToken': 'secret',
      npm_config__auth: 'secret',
      npm_config__password: 'secret',
      npm_config_key: 'secret',
      npm_config_otp: '123456',
    },
  });
  t.deepEqual(Object.keys(env).sort(), ['NPM_CONFIG_CACHE', 'npm_config_registry']);
  t.is(withheld.length, 5);
});

test('passes everything when asked to, except what is about the bridge itself', (t) => {
  const ours = {
    GITHUB_TOKEN: 'wanted',
    MCP_PORTAGE_PORT: '9000',
    mcp_portage_host: '0.0.0.0',
    npm_config_package: 'mcp-portage',
    npm_config_call: 'mcp-portage -- x',
  };
  const { env, withheld } = compose({ ours, inheritAll: true });
  t.deepEqual(env, { GITHUB_TOKEN: 'wanted' });
  t.deepEqual(withheld, []);
});

test('never lists the settings of the bridge as withheld', (t) => {
  t.deepEqual(compose({ ours: { MCP_PORTAGE_PORT: '9000' } }).withheld, []);
});

test('an assignment sets a value, overrides an inherited one and may be empty', (t) => {
  const { env } = compose({
    ours: { PATH: '/bin' },
    assignments: [
      { name: 'API_KEY', value: 'abc' },
      { name: 'PATH', value: '/opt/bin' },
      { name: 'EMPTY', value: '' },
    ],
  });
  t.deepEqual(env, { API_KEY: 'abc', PATH: '/opt/bin', EMPTY: '' });
});

test('a name alone is copied from here, and is then not withheld', (t) => {
  const { env, withheld, missing } = compose({
    ours: { GITHUB_TOKEN: 'wanted', OTHER: 'x' },
    assignments: [
      { name: 'GITHUB_TOKEN', value: undefined },
      { name: 'NOT_SET', value: undefined },
    ],
  });
  t.deepEqual(env, { GITHUB_TOKEN: 'wanted' });
  t.deepEqual(withheld, ['OTHER']);
  t.deepEqual(missing, ['NOT_SET']);
});

test('on Windows names are the same in any case and the system variables are passed', (t) => {
  const { env, withheld } = compose({
    ours: { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', 'ProgramFiles(x86)': 'C:\\x86', Secret: 'no' },
    platform: 'win32',
  });
  t.deepEqual(Object.keys(env).sort(), ['Path', 'ProgramFiles(x86)', 'SystemRoot']);
  t.deepEqual(withheld, ['Secret']);
});

test('what clients show to the bridge is not for the server, even if it gets everything else', (t) => {
  const ours = { ALICE_TOKEN: 'secret', OTHER: 'x' };
  const withheldAlways = ['ALICE_TOKEN'];
  t.deepEqual(compose({ ours, withheldAlways, inheritAll: true }).env, { OTHER: 'x' });
  t.deepEqual(compose({ ours, withheldAlways }).withheld, ['OTHER'], 'and nothing to name in a hint');
  const assignments = [{ name: 'ALICE_TOKEN', value: undefined }];
  t.deepEqual(compose({ ours, withheldAlways, assignments }).env, { ALICE_TOKEN: 'secret' }, 'unless it is named');
});
