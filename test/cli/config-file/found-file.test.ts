import test from 'ava';
import { ME, mistakes, read } from './read-text.ts';

const path = '/home/me/project/mcp.json';
const bytes = Buffer.from('{"mcpServers": {}}');
const refusal = async (found: object, around: object = {}): Promise<string | undefined> =>
  (await mistakes('', { files: { [path]: { bytes, ...found } }, around }))[0];

const WAY_OUT = 'or say --allow-writable-config where nobody else can reach it, as in a container.';

for (const mode of [0o666, 0o620, 0o602, 0o777]) {
  test(`a file with mode ${mode.toString(8)} is refused: others may write to it`, async (t) => {
    t.is(
      await refusal({ mode }),
      `--config: others may write to ${path}, and so have any program started as you. Forbid it with chmod go-w, ${WAY_OUT}`,
    );
  });
}

test('a file of another user is refused', async (t) => {
  t.is(
    await refusal({ uid: ME + 1 }),
    `--config: ${path} belongs to another user, who could have any program started as you. Make it yours (chown), ${WAY_OUT}`,
  );
});

test('files that others may read, and those of root, are taken', async (t) => {
  t.is(await refusal({ mode: 0o644 }), undefined);
  t.is(await refusal({ mode: 0o444, uid: 0 }), undefined);
});

test('in a container all of that may be let pass, and on Windows it says nothing', async (t) => {
  t.is(await refusal({ mode: 0o666, uid: 1 }, { mayBeWritable: true }), undefined);
  t.is(await refusal({ mode: 0o666 }, { platform: 'win32', uid: undefined }), undefined);
});

test('a file with variables is under the same rule', async (t) => {
  const entry = { mcpServers: { a: { command: 'x', envFile: '.env' } } };
  const files = { '/home/me/project/.env': { mode: 0o666, bytes: Buffer.from('A=b') } };
  t.regex((await mistakes(entry, { files }))[0] ?? '', /envFile: others may write to the file that is named here,/);
  t.is((await read(entry, { files, around: { mayBeWritable: true } })).servers.length, 1);
});

for (const [what, found, problem] of [
  ['a directory', { kind: 'directory' }, `${path} is a directory; expected a file.`],
  ['a device', { kind: 'other' }, `${path} is a device or a socket; expected a file.`],
  ['a file that is too large', { bytes: Buffer.alloc(4 * 2 ** 20 + 1, ' ') }, `${path} is larger than 4 MiB.`],
  [
    'a file in UTF-16',
    { bytes: Buffer.from('\ufeff{}', 'utf16le') },
    `${path} is not UTF-8; save it in that encoding.`,
  ],
] as const) {
  test(`${what} is refused`, async (t) => {
    t.is(await refusal(found), `--config: ${problem}`);
  });
}

test('a file that is not there is refused', async (t) => {
  t.deepEqual(await mistakes('', { path: '/a', files: {}, around: { cwd: '/', readFile: missing } }), [
    '--config: /a does not exist.',
  ]);
});

function missing(): never {
  throw Object.assign(new Error('none'), { code: 'ENOENT' });
}

test('a relative path is that of the folder the program runs in', async (t) => {
  const { path: found } = await read('{"servers": {}}', { path: '/home/me/x.json' });
  t.is(found, '/home/me/x.json');
});
