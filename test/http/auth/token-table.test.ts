import { timingSafeEqual } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { TokenSource } from '../../../src/config/access.ts';
import { TokenTable } from '../../../src/http/auth/token-table.ts';

const SILENT = pino({ level: 'silent' });
const value = (principal: string, token: string): TokenSource => ({ kind: 'value', principal, token });

async function tokenFile(t: ExecutionContext, content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'token');
  await writeFile(file, content);
  return file;
}

test('knows whose a token is, and whose it is not', (t) => {
  const table = new TokenTable([value('token:alice', 'a-secret'), value('token:bob', 'b-secret')], SILENT);
  t.is(table.find('a-secret'), 'token:alice');
  t.is(table.find('b-secret'), 'token:bob');
  for (const wrong of ['', 'a', 'a-secre', 'a-secret ', 'A-secret', 'b-secreT', 'token:alice']) {
    t.is(table.find(wrong), undefined, wrong);
  }
});

test('two tokens of one name are one caller, so that one can be replaced by the other', (t) => {
  const table = new TokenTable([value('token:alice', 'old'), value('token:alice', 'new')], SILENT);
  t.is(table.find('old'), 'token:alice');
  t.is(table.find('new'), 'token:alice');
});

test('every token is compared in constant time, whatever was shown and whichever matches', (t) => {
  const compared: number[] = [];
  const isEqual: typeof timingSafeEqual = (left, right) => {
    compared.push(left.byteLength, right.byteLength);
    return timingSafeEqual(left, right);
  };
  const table = new TokenTable([value('x', 'first'), value('y', 'second'), value('z', 'third')], SILENT, isEqual);
  for (const shown of ['first', 'third', 'a much longer text than any of the tokens', '']) {
    compared.length = 0;
    table.find(shown);
    t.deepEqual(compared, [32, 32, 32, 32, 32, 32], shown);
  }
});

test('a token in a file is read again when it changes', async (t) => {
  const file = await tokenFile(t, 'first\n');
  const table = new TokenTable([{ kind: 'file', principal: 'token:bob', file }], SILENT);
  t.is(table.find('first'), 'token:bob');
  await writeFile(file, 'second-and-longer\n');
  t.is(table.find('first'), undefined);
  t.is(table.find('second-and-longer'), 'token:bob');
});

test('a file without a token lets nobody in, and the log says so once, without what is in it', async (t) => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const file = await tokenFile(t, 'two words\n');
  const table = new TokenTable([{ kind: 'file', principal: 'token:bob', file }, value('x', 'good')], log);
  t.is(table.find('two words'), undefined);
  t.is(table.find(''), undefined);
  t.is(table.find('good'), 'x', 'the others are not concerned');
  await rm(file);
  t.is(table.find('two words'), undefined);
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /the file with the token of token:bob has no token/);
  t.is(JSON.parse(lines[0] ?? '').file, file);
  t.false(lines.join('').includes('two words'));
  await writeFile(file, 'back');
  t.is(table.find('back'), 'token:bob');
  t.is(table.find('back'), 'token:bob');
  t.is(lines.length, 1, 'nothing is said of a file that has a token');
  await rm(file);
  t.is(table.find('back'), undefined);
  t.is(lines.length, 2, 'and once more when it has none again');
});
