import test from 'ava';
import type { Fields } from '../../../../src/mcp/vocabulary/payload.ts';
import { changesBetween, type ListDigests, readLists } from '../../../../src/upstream/stdio/replacing/shown-lists.ts';
import type { Frame } from '../../../../src/wire/frame.ts';
import { errorFrame, resultFrame } from '../../../../src/wire/write-message.ts';

/** Lists by method; each item of a list is a page. */
type Pages = Readonly<Record<string, readonly (readonly object[])[]>>;

const MEMBERS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
};

/** Reads the lists of a server that names its pages with this prefix. */
function read(pages: Pages, { capabilities, prefix = '' }: { capabilities?: Fields; prefix?: string } = {}) {
  const asked: string[] = [];
  let isDone = false;
  const answerTo = (method: string, { cursor }: Fields): Frame => {
    asked.push(method);
    const list = pages[method];
    const page = cursor === undefined ? 0 : Number(String(cursor).slice(prefix.length));
    if (list === undefined) return errorFrame(1, { code: -32601, message: 'no such list' });
    const next = page + 1 < list.length ? { nextCursor: `${prefix}${page + 1}` } : {};
    return resultFrame(1, { [MEMBERS[method] ?? '']: list[page], ...next });
  };
  const digests: ListDigests = readLists(
    capabilities,
    (method, params, answered) => answered(answerTo(method, params)),
    () => {
      isDone = true;
    },
  );
  return { digests, asked, isDone: () => isDone };
}

const methodsOf = (before: Pages, after: Pages): readonly string[] =>
  changesBetween(read(before, { prefix: 'a' }).digests, read(after, { prefix: 'b' }).digests).map(
    ({ method }) => method,
  );

test('equal lists are no change, whatever the server calls its pages', (t) => {
  const pages = { 'tools/list': [[{ name: 'a' }], [{ name: 'b' }]], 'prompts/list': [[]] };
  t.deepEqual(methodsOf(pages, pages), []);
});

test('a change of any page, description or template is one change of its kind', (t) => {
  const tools = (description: string): Pages => ({ 'tools/list': [[{ name: 'a' }], [{ name: 'b', description }]] });
  t.deepEqual(methodsOf(tools('one'), tools('two')), ['notifications/tools/list_changed']);
  const resources: Pages = {
    'resources/list': [[{ uri: 'x:a' }]],
    'resources/templates/list': [[{ uriTemplate: 'x:{a}' }]],
  };
  t.deepEqual(methodsOf({ 'resources/list': [[]], 'resources/templates/list': [[]] }, resources), [
    'notifications/resources/list_changed',
  ]);
  t.deepEqual(methodsOf({}, { 'prompts/list': [[{ name: 'p' }]] }), ['notifications/prompts/list_changed']);
});

test('only lists of the declared capabilities are asked for', async (t) => {
  const { asked, isDone } = read({ 'tools/list': [[]] }, { capabilities: { tools: {} } });
  t.deepEqual(asked, ['tools/list']);
  t.true(isDone());
  const none = read({}, { capabilities: {} });
  await Promise.resolve();
  t.deepEqual(none.asked, []);
  t.true(none.isDone());
});

test('a list that was never read may have changed', (t) => {
  const { digests } = read({ 'tools/list': [[]] }, { capabilities: { tools: {} } });
  t.true(changesBetween(new Map(), digests).some(({ flag }) => flag === 'toolsListChanged'));
});

test('a server whose cursors lead in a circle is asked a limited number of times', (t) => {
  let asked = 0;
  readLists(
    { tools: {} },
    (_method, _params, answered) => {
      asked += 1;
      answered(resultFrame(1, { tools: [], nextCursor: 'again' }));
    },
    () => {},
  );
  t.is(asked, 100);
});
