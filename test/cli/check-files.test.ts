import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { checkFiles } from '../../src/cli/check-files.ts';
import { parseConfig } from '../../src/cli/parse-config.ts';
import type { Config } from '../../src/config.ts';
import { BridgeError } from '../../src/errors.ts';

const around = { env: {}, cwd: process.cwd(), platform: process.platform, stderrIsTerminal: false };
const { config } = parseConfig({ kind: 'command', command: 'server', args: [] }, new Map(), around);

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
  const inDirectory = (cwd: string) => refusal({ child: { ...config.child, cwd } });
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
    refusal({ listen: { ...config.listen, tls: { certFile: join(directory, cert), keyFile: join(directory, key) } } });
  t.regex(
    await withTls('none.pem', 'key.pem'),
    /^ERR_CONFIG_OPTION: --tls-cert: cannot read .*none\.pem \(ENOENT\)\.$/,
  );
  t.regex(
    await withTls('cert.pem', 'none.pem'),
    /^ERR_CONFIG_OPTION: --tls-key: cannot read .*none\.pem \(ENOENT\)\.$/,
  );
  t.regex(await withTls('cert.pem', 'key.pem'), /^ERR_CONFIG_COMBINATION: .* do not work together/);
});
