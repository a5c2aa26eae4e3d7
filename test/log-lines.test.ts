import test from 'ava';
import { createLineRenderer } from '../src/log-lines.ts';

const TIME = '2026-11-24T13:20:01.007Z';

const render = (fields: object, options = {}) =>
  createLineRenderer({ colors: false, fields: 'left-out', ...options })(
    JSON.stringify({ level: 'info', time: TIME, pid: 1, ...fields }),
  );
/** Without the time, which is that of the place. */
const said = (fields: object, options = {}) => render(fields, options).replace(/^\S+ /, '');

test('what a server writes to its stderr is marked as its own', (t) => {
  t.is(said({ server: 'everything', child: 'node', stream: 'stderr', msg: 'Ready.' }), 'everything │ Ready.\n');
  t.is(
    said({ child: 'npx @modelcontextprotocol/server-everything@1.2.0', stream: 'stderr', msg: 'Ready.' }),
    'server-everything │ Ready.\n',
  );
  const shown = said({ child: 'x', childPid: 7, stream: 'stderr', msg: 'Ready.' }, { fields: 'shown' });
  t.is(shown, 'x │ Ready.\n', 'its words alone, whatever the level');
});

test('a sentence says whose it is, once', (t) => {
  t.is(said({ server: 'notes', child: 'node', childPid: 7, msg: 'server started' }), 'notes: server started\n');
  t.is(said({ server: 'notes', msg: 'cursor connected to notes' }), 'cursor connected to notes\n');
});

test('what went wrong has its code, which is what one looks up', (t) => {
  t.is(said({ level: 'warn', code: 'ERR_X', msg: 'It failed.' }), 'warn It failed. (ERR_X)\n');
  t.is(said({ level: 'error', code: 'ERR_X', msg: 'ERR_X: It failed.' }), 'error ERR_X: It failed.\n');
  t.is(said({ code: 'ERR_SESSION_CLOSED', msg: 'it left' }), 'it left\n');
});

test('a warning contains its reason, once', (t) => {
  t.is(said({ level: 'warn', reason: 'no such host', msg: 'no keys' }), 'warn no keys: no such host\n');
  t.is(said({ level: 'error', reason: 'x y', code: 'ERR_X', msg: 'It failed' }), 'error It failed: x y (ERR_X)\n');
  t.is(said({ level: 'warn', reason: 'no such host', msg: 'no keys (no such host)' }), 'warn no keys (no such host)\n');
  t.is(said({ reason: 'the client left', msg: 'cursor left' }), 'cursor left\n');
});

test('an error that ends the program names the help on it', (t) => {
  const line = said({ level: 'fatal', code: 'ERR_CONFIG_LISTEN', msg: 'Port 8000 is in use.' });
  t.is(line, 'fatal Port 8000 is in use. (mcp-portage help ERR_CONFIG_LISTEN says more)\n');
});

test('the stack of a fault of ours is below its line', (t) => {
  const line = said({ level: 'fatal', msg: 'this is a bug', err: { stack: 'Error: x\n    at y' } });
  t.is(line, 'fatal this is a bug\n    Error: x\n        at y\n');
});

test('the banner stands as it is', (t) => {
  t.is(render({ banner: 'title', msg: 'mcp-portage 1.2.3 serves x' }), 'mcp-portage 1.2.3 serves x\n');
  t.is(render({ banner: 'line', msg: '' }), '\n');
});

test('the time is that of the day, with colors where they are wanted', (t) => {
  t.regex(render({ msg: 'x' }), /^\d\d:\d\d:01 x\n$/);
  t.regex(render({ msg: 'x' }, { fields: 'shown' }), /^\d\d:\d\d:01\.007 x\n$/);
  const colored = render({ level: 'error', msg: 'x' }, { colors: true });
  t.true(colored.endsWith(' \u001b[31merror\u001b[39m x\n'), colored);
});
