import test from 'ava';
import { readIndexedTool } from '../../../src/aggregate/search/indexed-tool.ts';
import { INDEX_LIMITS, SERVER_LIMITS, ToolIndex } from '../../../src/aggregate/search/tool-index.ts';
import { createRandom } from '../../wire/json-text.ts';

const toolOf = (server: string, name: string, description = '') =>
  readIndexedTool(server, `${server}__${name}`, { description });

async function namesOf(index: ToolIndex, query: string, limit = 10): Promise<readonly string[]> {
  return (await index.search(query, limit)).map(({ tool }) => tool.name);
}

test('finds tools by name, title, description and parameters, the name first', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [
    readIndexedTool('s', 'd', { inputSchema: { properties: { zebra: {} } } }),
    readIndexedTool('s', 'c', { description: 'Draws something. Or a zebra.' }),
    readIndexedTool('s', 'b', { description: 'Draws a zebra.' }),
    readIndexedTool('s', 'zebra', {}),
    readIndexedTool('s', 'other', {}),
  ]);
  t.deepEqual(await namesOf(index, 'zebra'), ['zebra', 'b', 'c', 'd']);
});

test('prefers the tool with most of the words to one with a rare word alone', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [toolOf('s', 'rename'), toolOf('s', 'move', 'Moves or renames a file on this computer')]);
  t.deepEqual(await namesOf(index, 'rename a file on my computer'), ['s__move', 's__rename']);
});

test('finds beginnings, synonyms and misspelled words', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [toolOf('s', 'delete_repository'), toolOf('s', 'send_message')]);
  for (const query of ['repos', 'remove', 'erase repo', 'repositry', 'dlete', 'deelte']) {
    t.deepEqual(await namesOf(index, query), ['s__delete_repository'], query);
  }
  t.deepEqual(await namesOf(index, 'xyzzy'), []);
  t.deepEqual(await namesOf(index, ''), []);
});

test('returns no more than the limit, in an order that does not depend on which server came first', async (t) => {
  const one = new ToolIndex();
  const other = new ToolIndex();
  const servers = ['a', 'b', 'c'].map((server) => [server, [toolOf(server, 'same')]] as const);
  for (const [server, tools] of servers) one.replace(server, tools);
  for (const [server, tools] of servers.toReversed()) other.replace(server, tools);
  t.deepEqual(await namesOf(one, 'same', 2), ['a__same', 'b__same']);
  t.deepEqual(await namesOf(other, 'same', 2), ['a__same', 'b__same']);
});

test('shows a caller the tools of its own servers only', async (t) => {
  const index = new ToolIndex();
  index.replace('a', [toolOf('a', 'same')]);
  index.replace('b', [toolOf('b', 'same')]);
  const found = await index.search('same', 1, (server) => server === 'b');
  t.deepEqual(
    found.map(({ tool }) => tool.name),
    ['b__same'],
  );
});

test('finds what a server has now: after a changed list, and not after its removal', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [toolOf('s', 'apple'), toolOf('s', 'pear', 'green')]);
  t.deepEqual(await namesOf(index, 'apple'), ['s__apple']);
  index.replace('s', [toolOf('s', 'cherry'), toolOf('s', 'pear', 'yellow')]);
  t.deepEqual(await namesOf(index, 'apple'), []);
  t.deepEqual(await namesOf(index, 'cherry'), ['s__cherry']);
  t.deepEqual(await namesOf(index, 'green'), []);
  t.deepEqual(await namesOf(index, 'yellow'), ['s__pear']);
  index.remove('s');
  index.remove('unknown');
  t.deepEqual(await namesOf(index, 'cherry yellow'), []);
});

test('after any changes, finds the same with the same scores as an index that never had others', async (t) => {
  const random = createRandom(38);
  const pick = (length: number): number => Math.floor(random() * length);
  const words = ['red', 'green', 'blue', 'create', 'remove', 'issue', 'file', 'mail', 'send', 'list'];
  const sentence = (): string => Array.from({ length: 1 + pick(5) }, () => words[pick(words.length)]).join(' ');
  const listOf = (server: string) =>
    Array.from({ length: pick(6) }, (_, index) => toolOf(server, `${words[pick(words.length)]}${index}`, sentence()));
  const changed = new ToolIndex();
  const last = new Map<string, ReturnType<typeof listOf>>();
  for (let step = 0; step < 200; step++) {
    const server = `s${pick(4)}`;
    if (random() < 0.2) {
      changed.remove(server);
      last.delete(server);
    } else {
      const tools = listOf(server);
      changed.replace(server, tools);
      last.set(server, tools);
    }
    if (random() < 0.5) await changed.search(sentence(), 3);
  }
  const fresh = new ToolIndex();
  for (const [server, tools] of last) fresh.replace(server, tools);
  const shown = async (index: ToolIndex, query: string) =>
    (await index.search(query, 100)).map(({ tool, score }) => `${tool.name} ${score.toPrecision(6)}`);
  for (const word of words) t.deepEqual(await shown(changed, word), await shown(fresh, word), word);
});

test('one server can fill a quarter of the index, and the others are found all the same', async (t) => {
  const index = new ToolIndex();
  const many = Array.from({ length: SERVER_LIMITS.tools + 3 }, (_, number) => toolOf('many', `n${number}`));
  index.replace('many', many);
  index.replace('other', [toolOf('other', 'apple')]);
  t.deepEqual(await namesOf(index, 'apple'), ['other__apple']);
  t.deepEqual([...index.leftOut], [['many', 3]]);
  index.replace('many', many.slice(3));
  t.deepEqual([...index.leftOut], []);
  t.deepEqual(await namesOf(index, `n${SERVER_LIMITS.tools + 2}`), [`many__n${SERVER_LIMITS.tools + 2}`]);
});

test('the tools of all servers together are limited', (t) => {
  const index = new ToolIndex();
  for (let server = 0; server < 5; server++) {
    const tools = Array.from({ length: INDEX_LIMITS.tools / 5 + 100 }, (_, number) =>
      toolOf(`s${server}`, `${number}`),
    );
    index.replace(`s${server}`, tools);
  }
  t.deepEqual([...index.leftOut], [['s4', 500]]);
});

test('the text of a server is limited, and so are its different words', async (t) => {
  const index = new ToolIndex();
  const long = 'same '.repeat(400);
  const count = Math.ceil(SERVER_LIMITS.characters / 2000) + 10;
  index.replace(
    'long',
    Array.from({ length: count }, (_, number) => toolOf('long', `${number}`, long)),
  );
  t.true((index.leftOut.get('long') ?? 0) >= 10);

  let next = 0;
  const strange = (): string => Array.from({ length: 200 }, () => `q${(next++).toString(36)}z`).join(' ');
  index.replace('long', []);
  index.replace(
    'strange',
    Array.from({ length: 400 }, (_, number) => toolOf('strange', `n${number}`, strange())),
  );
  index.replace('other', [toolOf('other', 'apple')]);
  t.deepEqual(await namesOf(index, 'apple'), ['other__apple']);
  const leftOut = index.leftOut.get('strange') ?? 0;
  t.true(leftOut > 0 && leftOut < 400);
  // The words of removed tools count no longer.
  index.remove('strange');
  t.deepEqual(await namesOf(index, 'apple'), ['other__apple']);
  index.replace('strange', [toolOf('strange', 'pear', strange())]);
  t.deepEqual(await namesOf(index, 'pear'), ['strange__pear']);
  t.deepEqual([...index.leftOut], []);
});

test('other work goes on while many tools are indexed', async (t) => {
  const index = new ToolIndex();
  index.replace(
    's',
    Array.from({ length: 1000 }, (_, number) => toolOf('s', `n${number}`, 'Lists the files of a folder. '.repeat(10))),
  );
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await index.search('folder', 1);
  isDone = true;
  t.true(turns > 20, `${turns} turns`);
});

test('a server that changes its list during a search does not keep it from ending, and two searches may overlap', async (t) => {
  const index = new ToolIndex();
  const listOf = (round: number) =>
    Array.from({ length: 300 }, (_, number) => toolOf('s', `n${number}`, `round ${round} ${'text '.repeat(50)}`));
  index.replace('s', listOf(0));
  index.replace('other', [toolOf('other', 'apple')]);
  let round = 1;
  let isDone = false;
  const change = (): void => {
    index.replace('s', listOf(round++));
    if (!isDone) setImmediate(change);
  };
  setImmediate(change);
  const found = await Promise.all([namesOf(index, 'apple'), namesOf(index, 'apple')]);
  isDone = true;
  t.deepEqual(found, [['other__apple'], ['other__apple']]);
  t.true(round > 2);
});

test('a name that objects have by themselves is a name like any other', async (t) => {
  const index = new ToolIndex();
  index.replace('s', [readIndexedTool('s', '__proto__', {}), readIndexedTool('s', 'constructor', {})]);
  t.deepEqual(await namesOf(index, 'proto'), ['__proto__']);
  t.deepEqual(await namesOf(index, 'constructor toString hasOwnProperty __proto__'), ['__proto__', 'constructor']);
});
