import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { checkFiles, readTextFile } from '../../src/cli/check-files.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { UnusableFile } from '../../src/cli/parse/servers/headers.ts';
import type { HttpListenerConfig } from '../../src/config/listener.ts';
import type { RemoteConfig } from '../../src/config/remote.ts';
import type { ServerConfig } from '../../src/config/server.ts';
import type { Config } from '../../src/config.ts';
import { BridgeError } from '../../src/errors.ts';
import { read } from './config-file/read-text.ts';

const around = {
  env: {},
  cwd: process.cwd(),
  platform: process.platform,
  stderrIsTerminal: false,
  readFile: readTextFile,
};
const target = { kind: 'command', command: 'server', args: [] } as const;
const { config } = parseConfig({ kind: 'bridge', verb: 'serve', target, names: [], options: new Map() }, around);
const [server] = config.servers;
const listener = config.listener as HttpListenerConfig;
const withServer = (changed: Partial<ServerConfig>): Config => ({ ...config, servers: [{ ...server, ...changed }] });
const withListener = (changed: Partial<HttpListenerConfig>): Config => ({
  ...config,
  listener: { ...listener, ...changed },
});
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
/** Windows has no permission bits. */
const testWithModes = process.platform === 'win32' ? test.skip : test;

async function refusal(changed: Partial<Config>): Promise<string> {
  try {
    await checkFiles({ ...config, ...changed });
    return 'accepted';
  } catch (error) {
    return error instanceof BridgeError ? `${error.code}: ${error.message}` : String(error);
  }
}

async function directoryOf(t: ExecutionContext, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return directory;
}

test('asks nothing of the disk without need', async (t) => {
  t.is(await refusal({}), 'accepted');
});

test('the working directory has to be one', async (t) => {
  const directory = await directoryOf(t, { file: '' });
  const inDirectory = (cwd: string) => refusal(withServer({ child: { ...server.child, cwd } }));
  t.is(await inDirectory(directory), 'accepted');
  t.regex(
    await inDirectory(join(directory, 'file')),
    /^ERR_CONFIG_OPTION: --cwd: expected a directory at .*; got a file\.$/,
  );
  t.regex(await inDirectory(join(directory, 'none')), /^ERR_CONFIG_OPTION: .*; got nothing there\.$/);
});

test('certificate and key have to be readable and to fit', async (t) => {
  const directory = await directoryOf(t, { 'cert.pem': 'not a certificate', 'key.pem': 'not a key' });
  const withTls = (cert: string, key: string) =>
    refusal(withListener({ tls: { certFile: join(directory, cert), keyFile: join(directory, key) } }));
  t.regex(await withTls('none.pem', 'key.pem'), /^ERR_CONFIG_OPTION: --tls-cert: .*none\.pem does not exist\.$/);
  t.regex(await withTls('cert.pem', 'none.pem'), /^ERR_CONFIG_OPTION: --tls-key: .*none\.pem does not exist\.$/);
  t.regex(await withTls('cert.pem', 'key.pem'), /^ERR_CONFIG_COMBINATION: .* do not work together/);
});

test('a key file that is empty, as one that is about to be written, is no key', async (t) => {
  const directory = await directoryOf(t, { 'empty.pem': '' });
  const tls = { certFile: fixture('server.pem'), keyFile: join(directory, 'empty.pem') };
  t.regex(await refusal(withListener({ tls })), /^ERR_CONFIG_COMBINATION: .* do not work together/);
});

const withRemote = (remote: Partial<RemoteConfig>) => withServer({ remote: { ...server.remote, ...remote } });
const withClientTls = (tls: Partial<RemoteConfig['tls']>) => withRemote({ tls: { ...server.remote.tls, ...tls } });

test('a client certificate and its key have to fit, and authorities to be certificates', async (t) => {
  const directory = await directoryOf(t, { 'empty.pem': '' });
  const pair = { certFile: fixture('client.pem'), keyFile: fixture('client-key.pem') };
  t.is(await refusal(withClientTls({ ...pair, caFile: fixture('ca.pem') })), 'accepted');
  t.regex(
    await refusal(withClientTls({ ...pair, keyFile: fixture('server-key.pem') })),
    /^ERR_CONFIG_COMBINATION: --client-cert, --client-key: .* do not work together/,
  );
  t.regex(
    await refusal(withClientTls({ caFile: join(directory, 'none.pem') })),
    /^ERR_CONFIG_OPTION: --ca: .*none\.pem does not exist\.$/,
  );
  for (const caFile of [fixture('client-key.pem'), join(directory, 'empty.pem')]) {
    t.regex(await refusal(withClientTls({ caFile })), /^ERR_CONFIG_OPTION: --ca: expected certificates in PEM form/);
  }
});

test('the file of a token has to be there, and may still be empty', async (t) => {
  const directory = await directoryOf(t, { token: '' });
  await chmod(join(directory, 'token'), 0o600);
  t.deepEqual(await checkFiles(withRemote({ bearerTokenFile: join(directory, 'token') })), []);
  t.regex(
    await refusal(withRemote({ bearerTokenFile: join(directory, 'none') })),
    /^ERR_CONFIG_OPTION: --bearer-token-file: .*none does not exist\.$/,
  );
  t.regex(
    await refusal(withRemote({ bearerTokenFile: directory })),
    /^ERR_CONFIG_OPTION: --bearer-token-file: .* is a directory\.$/,
  );
});

/** What is said of these options of a server, or of all, in a configuration file. */
async function saidOfFile(content: object): Promise<string> {
  const command = parseCommandLine(['serve', '--config', 'mcp.json']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const parsed = parseConfig(command, around, await read(content));
  try {
    return (await checkFiles(parsed.config, parsed.given)).join('\n');
  } catch (error) {
    return error instanceof BridgeError ? `${error.code}: ${error.message}` : String(error);
  }
}

const COMPANY = { clientId: 'at-server', idpIssuer: 'https://idp.example', idpClientId: 'at-company' };

test('a path that stands in a configuration file is named by its place alone, as it may be a secret in the wrong place', async (t) => {
  const directory = await directoryOf(t, { 'token-canary': 'hunter2', 'canary.pem': 'not a certificate' });
  await chmod(join(directory, 'token-canary'), 0o644);
  const [token, pem, none] = ['token-canary', 'canary.pem', 'canary'].map((name) => join(directory, name));
  const url = 'https://a.example/mcp';
  const command = 'x';
  const ofServer = (entry: object) => saidOfFile({ mcpServers: { a: entry } });
  const ofAll = (portage: object) => saidOfFile({ mcpServers: { a: { command } }, portage });
  const said = [
    [await ofServer({ url, portage: { ca: none } }), /portage\.ca\): the path that is named here does not exist\.$/],
    [
      await ofServer({ url, portage: { ca: pem } }),
      /portage\.ca\): expected certificates in PEM form in the path that/,
    ],
    [await ofServer({ url, portage: { bearerTokenFile: none } }), /bearerTokenFile\): the path .* does not exist\.$/],
    [
      await ofServer({ url, portage: { bearerTokenFile: directory } }),
      /bearerTokenFile\): the path .* is a directory\.$/,
    ],
    [
      await ofServer({ url, portage: { login: { grant: 'jwt-bearer', assertionFile: none } } }),
      /login\.assertionFile\): the path .* does not exist\.$/,
    ],
    [
      await ofServer({ url, portage: { login: { ...COMPANY, assertionFile: directory } } }),
      /login\.assertionFile\): the path .* is a directory\.$/,
    ],
    [
      await ofServer({ url, portage: { clientCert: pem, clientKey: pem } }),
      /clientCert\), .*clientKey\): .* do not work/,
    ],
    [
      await ofServer({ command, cwd: none }),
      /a\.cwd\): expected a directory at the path that is named here; got nothing/,
    ],
    [await ofAll({ tlsCert: none, tlsKey: none }), /portage\.tlsCert\): the path that is named here does not exist\.$/],
    [
      await ofAll({ authToken: `name=file:${none}` }),
      /portage\.authToken\): the path that is named here does not exist/,
    ],
  ] as const;
  for (const [text, expected] of said) {
    t.regex(text, expected);
    t.notRegex(text, /canary/);
  }
  if (process.platform === 'win32') return;
  const warning = await ofServer({ url, portage: { bearerTokenFile: token } });
  t.regex(warning, /bearerTokenFile\) the path that is named here: every user of this machine can read this file/);
  t.notRegex(warning, /canary/);
});

testWithModes('warns of a token that every user can read, without showing it', async (t) => {
  const directory = await directoryOf(t, { token: 'hunter2' });
  const bearerTokenFile = join(directory, 'token');
  await chmod(bearerTokenFile, 0o644);
  const [warning = '', ...more] = await checkFiles(withRemote({ bearerTokenFile }));
  t.regex(warning, /^--bearer-token-file .*token: every user of this machine can read this file; chmod 600/);
  t.false(warning.includes('hunter2'));
  t.deepEqual(more, []);
});

test('what is no file of text, or too large for one, is refused by what it is', async (t) => {
  const directory = await directoryOf(t, { long: 'A=1\n'.repeat(2 ** 18 + 1), longest: 'A=1\n'.repeat(2 ** 18) });
  await writeFile(join(directory, 'utf-16'), Buffer.from('\ufeffA=hunter2', 'utf16le'));
  await writeFile(join(directory, 'marked'), '\ufeffA=1');
  const read = (name: string) => readTextFile(resolve(directory, name));
  t.throws(() => read('.'), { instanceOf: UnusableFile, message: 'this is a directory; expected a file' });
  t.throws(() => read('long'), { instanceOf: UnusableFile, message: 'this file is larger than 1 MiB' });
  t.throws(() => read('utf-16'), { message: 'this file is not UTF-8; save it in that encoding' });
  t.is(read('longest').text.length, 2 ** 20);
  t.is(read('marked').text, 'A=1', 'a mark of the byte order is no part of the first name');
  if (process.platform === 'win32') return;
  const message = 'this is a device or a socket; expected a file';
  t.throws(() => read('/dev/zero'), { instanceOf: UnusableFile, message });
});

testWithModes('tells a file of headers that is private from one that is not', async (t) => {
  const directory = await directoryOf(t, { headers: 'A: b\n' });
  const path = join(directory, 'headers');
  await chmod(path, 0o604);
  t.deepEqual(readTextFile(path), { text: 'A: b\n', isOpenToAll: true });
  await chmod(path, 0o640);
  t.deepEqual(readTextFile(path), { text: 'A: b\n', isOpenToAll: false });
});

testWithModes("the files of callers' tokens have to be there, and their own; keys are public", async (t) => {
  const directory = await directoryOf(t, { token: 'x', keys: '{}' });
  const token = join(directory, 'token');
  const withAuth = (file: string, keys = join(directory, 'keys')) =>
    withListener({
      access: {
        ...listener.access,
        auth: {
          tokens: [{ kind: 'file', principal: 'token:alice', file }],
          oauth: { issuer: 'https://auth.example', audiences: ['x'], scopes: [], keys: { kind: 'file', file: keys } },
        },
      },
    });
  await chmod(token, 0o600);
  t.deepEqual(await checkFiles(withAuth(token)), []);
  await chmod(token, 0o644);
  t.regex((await checkFiles(withAuth(token)))[0] ?? '', /^--auth-token .*token: every user of this machine/);
  t.regex(await refusal(withAuth(join(directory, 'none'))), /^ERR_CONFIG_OPTION: --auth-token: .* does not exist\.$/);
  t.regex(await refusal(withAuth(directory)), /^ERR_CONFIG_OPTION: --auth-token: .* is a directory/);
  t.regex(
    await refusal(withAuth(token, join(directory, 'none'))),
    /^ERR_CONFIG_OPTION: --auth-jwks: .* does not exist/,
  );
});
