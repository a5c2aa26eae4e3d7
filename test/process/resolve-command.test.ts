import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { type FileKind, type FileSystemView, resolveCommand } from '../../src/process/resolve-command.ts';

function viewOf(platform: NodeJS.Platform, files: Readonly<Record<string, FileKind>>): FileSystemView {
  const currentFolder = platform === 'win32' ? 'C:\\work' : '/srv';
  return { platform, currentFolder, kindOf: (path) => files[path] ?? 'missing' };
}

interface Case {
  readonly title: string;
  readonly command: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly files: Readonly<Record<string, FileKind>>;
  readonly platform?: NodeJS.Platform;
}

const found: readonly (Case & { readonly path: string })[] = [
  {
    title: 'finds a command in the first folder of PATH that has it',
    command: 'server',
    env: { PATH: '/a:/b:/c' },
    files: { '/b/server': 'executable', '/c/server': 'executable' },
    path: '/b/server',
  },
  {
    title: 'passes over folders and files that are not executable',
    command: 'server',
    env: { PATH: '/a:/b:/c' },
    files: { '/a/server': 'folder', '/b/server': 'not-executable', '/c/server': 'executable' },
    path: '/c/server',
  },
  {
    title: 'takes a path relative to the working folder of the child',
    command: './server',
    cwd: 'app',
    files: { '/srv/app': 'folder', '/srv/app/server': 'executable' },
    path: '/srv/app/server',
  },
  {
    title: 'takes an empty entry of PATH for the working folder',
    command: 'server',
    env: { PATH: '/a:' },
    files: { '/srv/server': 'executable' },
    path: '/srv/server',
  },
  {
    title: 'looks where the system looks when the child has no PATH',
    command: 'sh',
    files: { '/bin/sh': 'executable' },
    path: '/bin/sh',
  },
  {
    title: 'tries the extensions of PATHEXT on Windows, whatever the case of the names',
    command: 'npx',
    env: { Path: 'C:\\a;C:\\b', PathExt: '.EXE;.CMD' },
    files: { 'C:\\b\\npx': 'executable', 'C:\\b\\npx.CMD': 'executable' },
    platform: 'win32',
    path: 'C:\\b\\npx.CMD',
  },
  {
    title: 'takes a name with an extension as it is on Windows, working folder first',
    command: 'server.exe',
    env: { PATH: 'C:\\a' },
    files: { 'C:\\work\\server.exe': 'executable', 'C:\\a\\server.exe': 'executable' },
    platform: 'win32',
    path: 'C:\\work\\server.exe',
  },
  {
    title: 'adds extensions to a path on Windows',
    command: '.\\bin\\server',
    env: {},
    files: { 'C:\\work\\bin\\server.BAT': 'executable' },
    platform: 'win32',
    path: 'C:\\work\\bin\\server.BAT',
  },
  {
    title: 'tries the usual extensions in their order where Windows names none',
    command: 'server',
    env: { PATH: 'C:\\a' },
    files: { 'C:\\a\\server.COM': 'executable', 'C:\\a\\server.CMD': 'executable' },
    platform: 'win32',
    path: 'C:\\a\\server.CMD',
  },
  {
    title: 'takes an empty entry of PATHEXT for none',
    command: 'server',
    env: { PATH: 'C:\\a', PATHEXT: ';.EXE' },
    files: { 'C:\\a\\server': 'executable', 'C:\\a\\server.EXE': 'executable' },
    platform: 'win32',
    path: 'C:\\a\\server.EXE',
  },
  {
    title: 'tries an extension that only PATHEXT names',
    command: 'server',
    env: { PATH: 'C:\\a', PATHEXT: '.PY' },
    files: { 'C:\\a\\server.PY': 'executable' },
    platform: 'win32',
    path: 'C:\\a\\server.PY',
  },
  {
    title: 'takes a backslash for a part of the name where folders are not written with it',
    command: 'a\\b',
    env: { PATH: '/a' },
    files: { '/a/a\\b': 'executable' },
    path: '/a/a\\b',
  },
];
for (const { title, command, cwd, env = {}, files, platform = 'linux', path } of found) {
  test(title, (t) => {
    t.is(resolveCommand({ command, cwd, env }, viewOf(platform, files)), path);
  });
}

const refused: readonly (Case & { readonly message: RegExp })[] = [
  {
    title: 'says that a command is in no folder of PATH and what to do',
    command: 'nosuch',
    env: { PATH: '/a:/b' },
    files: {},
    message: /"nosuch" is in none of the 2 folders of its PATH;.* --env PATH/,
  },
  {
    title: 'says that a command was quoted as one word, without its arguments',
    command: 'npx -y @scope/server --token secret',
    env: { PATH: '/a:/b' },
    files: {},
    message: /^Cannot start the server: "npx \.\.\." in quotes is one word, .* leave out the quotes: -- npx \.\.\.\.$/,
  },
  {
    title: 'says how a variable is set that stands before the program, without its value',
    command: 'API_KEY=secret',
    env: { PATH: '/a:/b' },
    files: {},
    message: /^Cannot start the server: "API_KEY=\.\.\." is not a program; .* before --, as --env API_KEY=\.\.\.\.$/,
  },
  {
    title: 'takes a path with an equals sign in it for no variable',
    command: './NAME=x',
    files: {},
    message: /^Cannot start the server: \/srv\/NAME=x does not exist; correct the path after --\.$/,
  },
  {
    title: 'says that a path with a space in it does not exist',
    command: '/my servers/one',
    files: {},
    message: /\/my servers\/one does not exist/,
  },
  {
    title: 'says that a path does not exist',
    command: './server',
    files: {},
    message: /\/srv\/server does not exist/,
  },
  {
    title: 'says that a file is not executable',
    command: '/a/server',
    files: { '/a/server': 'not-executable' },
    message: /\/a\/server is not executable; .*chmod/,
  },
  {
    title: 'says what runs a script that is not executable',
    command: './server.py',
    files: { '/srv/server.py': 'not-executable' },
    message: /\/srv\/server\.py is not executable; name what runs it, as in -- python3 \.\/server\.py, or .*chmod/,
  },
  {
    title: 'says what runs a script that is in no folder of PATH',
    command: 'server.mjs',
    env: { PATH: '/a:/b' },
    files: {},
    message: /"server\.mjs" is a script and no program in PATH; name what runs it, as in -- node server\.mjs\.$/,
  },
  {
    title: 'says that a folder is no program',
    command: '/a',
    files: { '/a': 'folder' },
    message: /^Cannot start the server: \/a is a folder; name the program in it\.$/,
  },
  {
    title: 'says that the working folder is missing rather than the command',
    command: '/a/server',
    cwd: '/gone',
    files: { '/a/server': 'executable' },
    message: /working folder \/gone does not exist .*--cwd/,
  },
  {
    title: 'counts the folders that PATH names on Windows',
    command: 'nosuch',
    env: { Path: 'C:\\a;;C:\\b;' },
    files: {},
    platform: 'win32',
    message: /"nosuch" is in none of the 2 folders of its PATH;/,
  },
  {
    title: 'counts no folders where Windows has no PATH',
    command: 'nosuch',
    files: {},
    platform: 'win32',
    message: /"nosuch" is in none of the 0 folders of its PATH;/,
  },
  {
    title: 'counts the folders that the system has without PATH',
    command: 'nosuch',
    files: {},
    message: /"nosuch" is in none of the 3 folders of its PATH;/,
  },
  {
    title: 'does not look in PATH for a path of Windows',
    command: '.\\server',
    env: { PATH: 'C:\\a' },
    files: { 'C:\\a\\server.EXE': 'executable' },
    platform: 'win32',
    message: /C:\\work\\server does not exist; correct the path after --/,
  },
  {
    title: 'names the first file that is not executable',
    command: 'server',
    env: { PATH: '/a:/b' },
    files: { '/a/server': 'not-executable', '/b/server': 'folder' },
    message: /^Cannot start the server: \/a\/server is not executable; make it so with chmod \+x\.$/,
  },
  {
    title: 'says that the working folder is a file',
    command: '/a/server',
    cwd: '/a/server',
    files: { '/a/server': 'executable' },
    message: /working folder \/a\/server does not exist or is not a folder; correct --cwd/,
  },
  {
    title: 'says that the command is empty',
    command: '',
    env: { PATH: '/a' },
    files: { '/a': 'folder' },
    message: /^Cannot start the server: the command is empty; write it after --\.$/,
  },
];
for (const { title, command, cwd, env = {}, files, platform = 'linux', message } of refused) {
  test(title, (t) => {
    const error = t.throws(() => resolveCommand({ command, cwd, env }, viewOf(platform, files)), {
      instanceOf: BridgeError,
      message,
    });
    t.is(error?.code, 'ERR_UPSTREAM_SPAWN');
    t.is(error?.audiences.exit, 69);
  });
}

test('finds the running node in the real file system', (t) => {
  const env = { PATH: ['/nonexistent', dirname(process.execPath)].join(delimiter) };
  const file = resolveCommand({ command: basename(process.execPath), cwd: undefined, env });
  t.is(file.toLowerCase(), process.execPath.toLowerCase());
});

test('tells a program from a folder and from a file without permission in the real file system', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'resolve-command-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const resolveFile = (command: string) => resolveCommand({ command: join(folder, command), cwd: folder, env: {} });
  writeFileSync(join(folder, 'plain.exe'), '', { mode: 0o600 });
  t.throws(() => resolveFile('.'), { message: / is a folder;/ });
  t.throws(() => resolveFile('missing'), { message: / does not exist;/ });
  // Windows has no such permission.
  if (process.platform !== 'win32') t.throws(() => resolveFile('plain.exe'), { message: / is not executable;/ });
});
