import test from 'ava';
import { TermReader } from '../../../src/aggregate/search/words.ts';

const isWord = (term: string): boolean => !term.startsWith('=');
const namesOf = (text: string) => new TermReader().ofNames(text).filter(isWord);
const textOf = (text: string) => new TermReader().ofText(text).filter(isWord);
const queryOf = (text: string) => new TermReader().ofQuery(text).map(({ term }) => term);

test('splits names at camelCase and at every mark, and keeps a camelCase name as one word too', (t) => {
  t.deepEqual(namesOf('a__get_user-list.v2/x'), ['a', 'get', 'user', 'list', 'v2', 'x']);
  t.deepEqual(namesOf('getHTMLFile'), ['get', 'html', 'file', 'gethtmlfil']);
  t.deepEqual(namesOf('GitHub'), ['git', 'hub', 'github']);
});

test('leaves out of texts the words that say nothing', (t) => {
  t.deepEqual(textOf('It is the list of all files in a GitHub repo.'), ['list', 'file', 'github', 'repo']);
});

test('reads a query as different words, and splits an identifier, but no brand', (t) => {
  t.deepEqual(queryOf('show the files, show createIssue of GitHub'), ['show', 'file', 'creat', 'issu', 'github']);
});

test('keeps a query that has only words that say nothing', (t) => {
  t.deepEqual(queryOf('who am I'), ['who']);
  t.deepEqual(queryOf('to be or not to be'), ['to', 'be', 'or', 'not']);
  t.deepEqual(queryOf(' \n…!'), []);
});

test('finds a word in singular and plural, whatever its case, accents and width', (t) => {
  t.deepEqual(textOf('Repositories repository REPOSITORY'), ['repositori', 'repositori', 'repositori']);
  t.deepEqual(textOf('Café cafe\u0301 ｃａｆｅ'), ['cafe', 'cafe', 'cafe']);
  t.deepEqual(textOf('файлы'), ['файлы']);
});

test('takes pairs of characters for words where no spaces show the words', (t) => {
  t.deepEqual(textOf('发送邮件'), ['发送', '送邮', '邮件']);
  t.deepEqual(textOf('发'), ['发']);
});

test('gives words that mean the same a common term', (t) => {
  const conceptsOf = (word: string) => new TermReader().ofQuery(word)[0]?.concepts ?? [];
  const share = (one: string, other: string): boolean =>
    conceptsOf(one).some((concept) => conceptsOf(other).includes(concept));
  t.true(share('remove', 'erasing'));
  t.true(share('repo', 'Repositories'));
  t.true(share('terminal', 'shell'));
  t.false(share('terminal', 'terminate'), 'the two have one stem');
  t.deepEqual(conceptsOf('frobnicate'), []);
});

test('takes news for no form of new', (t) => {
  t.deepEqual(textOf('new news'), ['new', 'news']);
});

test('cuts a word that is too long to be one', (t) => {
  t.is(textOf('q'.repeat(100_000))[0]?.length, 32);
});

test('forgets words when it knows too many, and reads on', (t) => {
  const terms = new TermReader();
  for (let index = 0; index < 100_001; index++) terms.ofText(`w${index}`);
  t.is(terms.newWords, 100_001);
  t.deepEqual(terms.ofText('w5'), ['w5']);
});
