import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { ProgramFiles } from '../../src/start/program-files.ts';

const FILES = {
  'first.cjs': "exports.second = () => require('./second.cjs').name;",
  'second.cjs': "exports.name = 'second';",
};

interface First {
  second(): string;
}

function build(t: ExecutionContext) {
  const directory = mkdtempSync(join(tmpdir(), 'mcp-portage-files-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const built = Object.fromEntries(
    Object.entries(FILES).map(([name, text]) => {
      writeFileSync(join(directory, name), text);
      return [name, { digest: 'ab'.repeat(32), checksum: crc32(text) }];
    }),
  );
  const files = new ProgramFiles({ directory, built, argv: [], env: {} });
  return { directory, first: files.load('./first.cjs') as First };
}

test('a file is loaded when it is used', (t) => {
  t.is(build(t).first.second(), 'second');
});

test('a file that an upgrade has replaced since the start is not mixed with those that run', (t) => {
  const { directory, first } = build(t);
  writeFileSync(join(directory, 'second.cjs'), "exports.name = 'of the next version';");
  t.throws(() => first.second(), { message: /second\.cjs is missing, or another one than .*; restart mcp-portage\.$/ });
});

test('a file that an upgrade has removed since the start is named with the way out', (t) => {
  const { directory, first } = build(t);
  rmSync(join(directory, 'second.cjs'));
  t.throws(() => first.second(), { message: /second\.cjs is missing, .*; restart mcp-portage\.$/ });
});
