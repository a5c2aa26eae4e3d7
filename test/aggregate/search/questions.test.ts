/** Measures how often the search finds the right tool among those of published servers. */
import test from 'ava';
import { PUBLISHED_TOOLS, publishedIndex, SERVERS } from './published-tools.ts';
import { FURTHER_QUESTIONS, HELD_OUT, QUESTIONS, type Question } from './questions.ts';

const index = publishedIndex();

/** The questions that none of the first five tools answers. */
async function missedBy(questions: readonly Question[]): Promise<readonly string[]> {
  const missed: string[] = [];
  for (const { query, expected } of questions) {
    const found = (await index.search(query, 5)).map(({ tool }) => tool.name);
    if (!found.some((name) => expected.includes(name))) missed.push(`${query} → ${found.join(' ')}`);
  }
  return missed;
}

test('the questions are about more than three hundred tools, and each names tools that exist', (t) => {
  t.true(PUBLISHED_TOOLS.length > 300);
  t.is(
    Object.values(SERVERS).reduce((sum, { tools }) => sum + tools, 0),
    PUBLISHED_TOOLS.length,
  );
  const names = new Set(PUBLISHED_TOOLS.map(({ server, name }) => `${server}__${name}`));
  t.is(names.size, PUBLISHED_TOOLS.length);
  t.deepEqual([QUESTIONS.length, FURTHER_QUESTIONS.length, HELD_OUT.length], [40, 50, 30]);
  t.deepEqual(
    [...QUESTIONS, ...FURTHER_QUESTIONS, ...HELD_OUT]
      .flatMap(({ expected }) => expected)
      .filter((name) => !names.has(name)),
    [],
  );
});

const answered = test.macro({
  title: (questions) => `the right tool is among the first five for ${questions}`,
  async exec(t, questions: readonly Question[], part: number) {
    const missed = await missedBy(questions);
    t.log(`${questions.length - missed.length} of ${questions.length}`);
    for (const question of missed) t.log(question);
    t.true(questions.length - missed.length >= part * questions.length);
  },
});

test('nine of ten of forty everyday questions', answered, QUESTIONS, 0.9);
test('four of five of fifty more', answered, FURTHER_QUESTIONS, 0.8);
test('four of five of thirty that it was not improved by', answered, HELD_OUT, 0.8);

test('a tool is first when it is asked for by its name, with or without the prefix of its server', async (t) => {
  const nameAt = async (query: string) => (await index.search(query, 1))[0]?.tool.name;
  for (const { server, name } of PUBLISHED_TOOLS) {
    t.is(await nameAt(`${server}__${name}`), `${server}__${name}`);
    t.is(await nameAt(`${server} ${name.replaceAll('_', ' ')}`), `${server}__${name}`);
    t.regex((await nameAt(name)) ?? '', new RegExp(`__${name}$`));
  }
});

test('a typing mistake in a word does not hide a tool that the other words find', async (t) => {
  for (const [query, expected] of [
    ['creat isue github', 'github__create_issue'],
    ['send emial', 'gmail__send_email'],
    ['take a screnshot', 'playwright__browser_take_screenshot'],
    ['kubernetes lgos of a pod', 'kubernetes__kubectl_logs'],
  ] as const) {
    t.true(
      (await index.search(query, 5)).some(({ tool }) => tool.name === expected),
      query,
    );
  }
});
