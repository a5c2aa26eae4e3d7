/** What is in the package, and that other tools read its description as it is meant. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import test from 'ava';
import { publint } from 'publint';
import { describePacked, npm, packInto, ROOT } from './packed.ts';

/** Everything that users get. A new file belongs here only if they need it. */
const CONTENTS = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'bin/mcp-portage.js',
  'bin/package.json',
  'dist/THIRD-PARTY-LICENSES.txt',
  'dist/aggregate.cjs',
  'dist/bridge.cjs',
  'dist/cli.cjs',
  'dist/clients.cjs',
  'dist/config-file.cjs',
  'dist/entry-schema.cjs',
  'dist/eras.cjs',
  'dist/error-help.cjs',
  'dist/got.cjs',
  'dist/grpc.cjs',
  'dist/help.cjs',
  'dist/info.cjs',
  'dist/ioredis.cjs',
  'dist/json-tree.cjs',
  'dist/library-functions.cjs',
  'dist/library.cjs',
  'dist/library.d.cts',
  'dist/library.d.mts',
  'dist/library.mjs',
  'dist/login.cjs',
  'dist/mqtt.cjs',
  'dist/oauth4webapi.cjs',
  'dist/observe.cjs',
  'dist/pins.cjs',
  'dist/probe.cjs',
  'dist/prom-client.cjs',
  'dist/recording.cjs',
  'dist/remote.cjs',
  'dist/replay.cjs',
  'dist/replicas.cjs',
  'dist/search.cjs',
  'dist/seldom.cjs',
  'dist/shared-files.cjs',
  'dist/shared.cjs',
  'dist/sockets.cjs',
  'dist/start.cjs',
  'dist/status-page.cjs',
  'dist/toml-tree.cjs',
  'dist/top.cjs',
  'dist/traces.cjs',
  'dist/view.cjs',
  'dist/watch.cjs',
  'dist/ws.cjs',
  'dist/yaml-tree.cjs',
  'docs/guide/security.md',
  'docs/reference/config-file.md',
  'docs/reference/config.schema.json',
  'man/mcp-portage.1',
  'package.json',
];
/** Of the archive, which is what `npx` fetches; it is 1.45 MB. */
const MAX_BYTES = 1_475_000;

const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-contents-'));
const manifest = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));

let archive: Buffer;
test.before(async () => {
  archive = await readFile(await packInto(folder));
});
test.after.always(() => rm(folder, { recursive: true, force: true }));

test('npm publish would publish these files and no others', async (t) => {
  // A statement of provenance can be made by the workflow only.
  const packed = describePacked(await npm(ROOT, 'publish', '--dry-run', '--json', '--provenance=false'));
  t.deepEqual(packed.files.map(({ path }) => path).sort(), [...CONTENTS].sort());
  t.true(packed.size < MAX_BYTES, `${packed.size} bytes`);
  t.log(`${packed.size} bytes packed, ${packed.unpackedSize} unpacked`);
});

test('an installation brings nothing but the package itself, native code least of all', (t) => {
  for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies', 'bundleDependencies']) {
    t.is(manifest[kind], undefined, kind);
  }
  // npm links the pages of a list alone.
  t.deepEqual(manifest.man, ['man/mcp-portage.1']);
  for (const script of ['preinstall', 'install', 'postinstall']) t.is(manifest.scripts[script], undefined, script);
});

test('every package whose code is in the bundle has its license in the notice', async (t) => {
  const notice = await readFile(new URL('../../dist/THIRD-PARTY-LICENSES.txt', import.meta.url), 'utf8');
  for (const name of ['pino', 'zod', 'got', 'jose', 'yargs-parser', 'prom-client']) {
    t.regex(notice, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(.+\\)$`, 'm'), name);
  }
  t.notRegex(notice, /no license file/);
});

test('TypeScript finds the types of the package however it is imported', async (t) => {
  const checked = await checkPackage(createPackageFromTarballData(new Uint8Array(archive)));
  if (checked.types === false) return t.fail('the package has no types');
  t.deepEqual(
    checked.problems.map(({ kind }) => kind),
    [],
  );
});

test('publint finds nothing in the description of the package to complain of', async (t) => {
  const tarball = new Uint8Array(archive).buffer;
  const { messages } = await publint({ pack: { tarball }, strict: true });
  t.deepEqual(
    messages.filter(({ type }) => type !== 'suggestion'),
    [],
  );
});
