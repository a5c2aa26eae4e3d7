import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { toSpawnError } from '../../src/process/spawn-error.ts';
import { scriptSpec } from './child-spec.ts';

const failedWith = (code: string) => toSpawnError(scriptSpec(''), Object.assign(new Error('spawn'), { code }));

for (const [code, wayOut] of [
  ['ENOENT', /the interpreter named in its first line is not; install it or correct that line\.$/],
  ['EACCES', /\(EACCES\); check the permissions of its file and folders\.$/],
  ['EMFILE', /too many files are open \(EMFILE\); allow more with ulimit -n, or fewer servers with --max-sessions\.$/],
  ['ENFILE', /too many files are open \(ENFILE\); allow more with ulimit -n, or fewer servers with --max-sessions\.$/],
  ['EAGAIN', /cannot start another process \(EAGAIN\); allow fewer servers with --max-sessions\.$/],
  ['ENOMEM', /cannot start another process \(ENOMEM\); allow fewer servers with --max-sessions\.$/],
  ['E2BIG', /too large together \(E2BIG\); do without --inherit-env\.$/],
  ['EPERM', /the system refused \(EPERM\)\.$/],
] as const) {
  test(`says what can be done when the system refuses to start a program with ${code}`, (t) => {
    const error = failedWith(code);
    t.is(error.code, 'ERR_UPSTREAM_SPAWN');
    t.true(error.message.startsWith(`Cannot start server "${scriptSpec('').name}": `), error.message);
    t.regex(error.message, wayOut);
    t.is((error.cause as NodeJS.ErrnoException).code, code);
  });
}

for (const code of ['ENOENT', 'EACCES']) {
  test(`says that the command is missing where that is why the system answers ${code}`, (t) => {
    const spec = { ...scriptSpec(''), command: 'no-such-program', env: { PATH: '/nonexistent' } };
    const error = toSpawnError(spec, Object.assign(new Error('spawn'), { code }));
    t.regex(error.message, /"no-such-program" is in none of the 1 folders of its PATH/);
  });
}

test('says no more of a refusal than there is in it', (t) => {
  for (const cause of [new Error('spawn'), 'spawn', Object.assign(new Error('spawn'), { code: 1 })]) {
    t.regex(toSpawnError(scriptSpec(''), cause).message, /: the system refused \(unknown error\)\.$/);
  }
  const known = new BridgeError('ERR_UPSTREAM_SPAWN', 'Cannot start the server: it is a folder.');
  t.is(toSpawnError(scriptSpec(''), known), known);
});
