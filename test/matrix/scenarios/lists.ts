import type { ListName, MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { PROMPTS, RESOURCES, SUM_META, VIEW } from '../servers/content.js';

/** Every page of a list, one after the other. */
export async function namesIn(client: MatrixClient, list: ListName): Promise<readonly (readonly string[])[]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await client.list(list, cursor);
    pages.push(items.map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return pages;
}

const namesOf = (items: readonly { readonly name: string }[]): readonly string[] => items.map(({ name }) => name);

export const LISTS: readonly Scenario[] = [
  {
    title: 'lists come page by page, with the cursors of the server',
    needs: ['reading'],
    async run(t, cell) {
      const client = await cell.main();
      const resources = await namesIn(client, 'resources');
      t.deepEqual(
        resources.map((page) => page.length),
        [4, 4, 2],
      );
      t.deepEqual(resources.flat(), namesOf(RESOURCES));
      t.deepEqual((await namesIn(client, 'prompts')).flat(), namesOf(PROMPTS));
      const tools = await namesIn(client, 'tools');
      t.true(tools.length > 2 && tools.flat().includes('exit'));
    },
  },
  {
    title: 'a cursor that is not of the server is refused by the server',
    needs: ['reading'],
    async run(t, cell) {
      const client = await cell.main();
      const error = await t.throwsAsync(client.list('tools', 'made up'));
      t.like(error, { code: -32602, data: { cursor: 'made up' } });
    },
  },
  {
    title: 'resources are read as text, as bytes and through a template',
    needs: ['reading'],
    async run(t, cell) {
      const client = await cell.main();
      t.like(await client.readResource('test://numbered/3'), [{ text: 'This is number 3.' }]);
      const [bytes] = await client.readResource('test://bytes');
      t.deepEqual([...Buffer.from(bytes?.blob ?? '', 'base64')], [...Array(256).keys()]);
      t.like(await client.listTemplates(), [{ uriTemplate: 'test://made/{of}' }]);
      t.like(await client.readResource('test://made/caf%C3%A9'), [{ text: 'made of café' }]);
    },
  },
  {
    title: 'tools and resources keep the _meta by which hosts show views of MCP Apps',
    needs: ['extensions'],
    async run(t, cell) {
      const client = await cell.main();
      const { items } = await client.list('tools');
      t.deepEqual(
        (items.find(({ name }) => name === 'sum') as { readonly _meta?: unknown } | undefined)?._meta,
        SUM_META,
      );
      t.deepEqual(await client.readResource(VIEW.uri), [VIEW]);
    },
  },
  {
    title: 'prompts are filled in',
    needs: ['reading'],
    async run(t, cell) {
      const client = await cell.main();
      t.deepEqual(await client.getPrompt('city', { city: 'Reykjavík' }), [
        { role: 'user', content: { type: 'text', text: 'What is the weather in Reykjavík?' } },
      ]);
    },
  },
  {
    title: 'arguments are completed, with those given before',
    needs: ['reading'],
    async run(t, cell) {
      const client = await cell.main();
      const ask = { ref: { type: 'ref/prompt', name: 'city' }, argument: { name: 'city', value: 'Pa' } };
      t.deepEqual(await client.complete(ask), ['Paris', 'Parma']);
      t.deepEqual(await client.complete({ ...ask, context: { arguments: { country: 'Italy' } } }), ['Parma']);
    },
  },
];
