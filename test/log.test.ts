import test from 'ava';
import { createLog, type LogOptions, redactCredentials } from '../src/log.ts';
import { VERSION } from '../src/version.ts';

async function collect(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = await createLog({ level: 'info', format: 'json', colors: false, destination, ...options });
  return { log, lines };
}

test('json lines carry level by name, time as text and the fields', async (t) => {
  const { log, lines } = await collect();
  log.info({ session: 'abc' }, 'session opened');
  const line = JSON.parse(lines[0] ?? '');
  t.like(line, { level: 'info', session: 'abc', msg: 'session opened', pid: process.pid });
  t.true(Math.abs(Date.parse(line.time) - Date.now()) < 60_000);
  t.true(lines[0]?.endsWith('}\n'));
});

test('the first json line has the version of the program, and no other', async (t) => {
  const { log, lines } = await collect();
  log.debug('not written');
  log.warn({ ms: 3 }, 'slow');
  log.info('usual');
  t.like(JSON.parse(lines[0] ?? ''), { ms: 3, msg: 'slow', version: VERSION });
  t.false('version' in JSON.parse(lines[1] ?? ''));
  t.true(lines[0]?.endsWith('}\n'));
});

test('lines below the level are not written, and silent writes none', async (t) => {
  const { log, lines } = await collect({ level: 'warn' });
  log.info('no');
  log.warn('yes');
  t.is(lines.length, 1);
  const silent = await collect({ level: 'silent' });
  silent.log.fatal('no');
  t.deepEqual(silent.lines, []);
});

test('pretty lines are short, and an address stands as it is', async (t) => {
  const { log, lines } = await collect({ format: 'pretty' });
  log.info({ endpoint: { label: 'HTTP+SSE', url: 'http://h/sse' } }, 'HTTP+SSE  http://h/sse');
  log.warn({ session: 'abc', ms: 3 }, 'slow');
  log.info({ session: 'abc' }, 'usual');
  t.is(lines[0], '  HTTP+SSE  http://h/sse\n');
  t.regex(lines[1] ?? '', /^\d\d:\d\d:\d\d warn slow\n$/);
  t.regex(lines[2] ?? '', /^\d\d:\d\d:\d\d usual\n$/);
});

test('pretty lines have their fields where details were asked for, without the process id', async (t) => {
  const { log, lines } = await collect({ format: 'pretty', level: 'debug' });
  log.warn({ session: 'abc', ms: 3 }, 'slow');
  log.debug({ server: 'everything' }, 'everything is well');
  t.regex(lines[0] ?? '', /^\d\d:\d\d:\d\d\.\d{3} warn slow \{"session":"abc","ms":3\}\n$/);
  t.regex(lines[1] ?? '', /^[\d:.]{12} debug everything is well \{"server":"everything"\}\n$/);
});

test('pretty lines have colors only when asked for', async (t) => {
  const colorStart = String.fromCharCode(27);
  const plain = await collect({ format: 'pretty', colors: false });
  plain.log.info('x');
  t.false(plain.lines[0]?.includes(colorStart));
  const colored = await collect({ format: 'pretty', colors: true });
  colored.log.warn('x');
  t.true(colored.lines[0]?.includes(colorStart));
});

for (const format of ['json', 'pretty'] as const) {
  test(`what a peer has chosen makes no long line and drives no terminal (${format})`, async (t) => {
    const { log, lines } = await collect({ format, level: 'debug' });
    const chosen = `notifications/\u001b[31m\u009b2J\u202e\n${'x'.repeat(1_000_000)}`;
    log.child({ session: 'abc' }).warn({ method: chosen, id: chosen, reason: chosen }, 'a message was not taken');
    const [line = ''] = lines;
    t.true(line.length < 2000);
    for (const control of ['\u001b', '\u009b', '\u202e', '\\u001b', '\\n']) t.false(line.includes(control), control);
    t.is(line.split('notifications/').length, 4, 'the beginning is there');
    log.warn({ id: 7 }, 'numbers are as they are');
    t.regex(lines[1] ?? '', /"id":7/);
  });

  test(`credentials do not reach the log (${format})`, async (t) => {
    const { log, lines } = await collect({ format, level: 'debug' });
    log.info(
      {
        authorization: 'Bearer hunter2',
        token: 'hunter2',
        headers: { authorization: 'hunter2', cookie: 'hunter2', 'set-cookie': 'hunter2', 'x-api-key': 'hunter2' },
        child: { env: { API_KEY: 'hunter2' }, auth: { clientSecret: 'hunter2', deeper: { PASSWORD: 'hunter2' } } },
        err: Object.assign(new Error('refused'), { options: { headers: { authorization: 'hunter2' } } }),
      },
      'request',
    );
    t.false(lines[0]?.includes('hunter2'), lines[0]);
    t.true(lines[0]?.includes('[redacted]'));
  });
}

test('an error is logged with its stack and its cause', async (t) => {
  const { log, lines } = await collect();
  log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
  const { err } = JSON.parse(lines[0] ?? '');
  t.regex(err.stack, /log\.test/);
  t.regex(err.stack, /inner/);
});

test('replaces what a field named for a credential holds, in any spelling and up to four levels down', (t) => {
  t.deepEqual(redactCredentials({ a: 1, Authorization: 'x', api_key: 'x', b: { c: { 'Set-Cookie': ['x'], d: 2 } } }), {
    a: 1,
    Authorization: '[redacted]',
    api_key: '[redacted]',
    b: { c: { 'Set-Cookie': '[redacted]', d: 2 } },
  });
});

test('leaves other fields alone, names that merely contain such a word too', (t) => {
  const fields = { progressToken: 1, tokens: 5, secretary: 'x', nothing: null, list: [1, { a: 2 }] };
  t.is(redactCredentials(fields), fields);
});

test('does not change the object it was given', (t) => {
  const fields = { token: 'x', inner: { password: 'y' } };
  redactCredentials(fields);
  t.deepEqual(fields, { token: 'x', inner: { password: 'y' } });
});

test('survives cycles', (t) => {
  const fields: Record<string, unknown> = {};
  fields.self = fields;
  t.notThrows(() => redactCredentials(fields));
});

test('who draws on the terminal hears of each line before it is written', async (t) => {
  const order: string[] = [];
  const destination = { write: (line: string) => void order.push(JSON.parse(line).msg) };
  const { log } = await collect({ destination, beforeLine: () => void order.push('clear the line') });
  log.debug('not written');
  log.info('a line');
  t.deepEqual(order, ['clear the line', 'a line']);
});

for (const format of ['json', 'pretty'] as const) {
  test(`a line shows all that is in it, wherever peers are quoted, and stays one line (${format})`, async (t) => {
    const { log, lines } = await collect({ format, level: 'debug' });
    const hidden = 'a\u202eb\u200bc\u{e0041}d\u009b31me\u001b[31mf\ng';
    log.info(hidden);
    log.warn({ code: 'X', reason: hidden, nested: { said: hidden } }, `it said ${hidden}`);
    for (const line of lines) t.regex(line, /abcd(31m)?efg.*\n$/);
    // Those of a stack are set in.
    log.error({ err: new Error(hidden) }, 'failed');
    t.is(lines.length, 3);
    for (const line of lines) t.notRegex(line, /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u);
  });
}
