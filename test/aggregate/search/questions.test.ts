/** How well the search finds the right tool among those of published servers. */
import test from 'ava';
import { PUBLISHED_TOOLS, publishedIndex, SERVERS } from './published-tools.ts';
import { QUESTIONS, type Question } from './questions.ts';

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
  t.is(QUESTIONS.length, 40);
  t.deepEqual(
    QUESTIONS.flatMap(({ expected }) => expected).filter((name) => !names.has(name)),
    [],
  );
});

test('of forty everyday questions, the right tool is among the first five in nine of ten', async (t) => {
  const missed = await missedBy(QUESTIONS);
  t.log(`${QUESTIONS.length - missed.length} of ${QUESTIONS.length}`);
  for (const question of missed) t.log(question);
  t.true(missed.length <= QUESTIONS.length / 10);
});

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
