import test from 'ava';
import { SEARCH_TOOL_DEFINITIONS } from '../../src/aggregate/search/search-tools.ts';
import { PUBLISHED_TOOLS, SERVERS } from '../aggregate/search/published-tools.ts';
import { documentAt } from './documents.ts';

const page = documentAt('docs/guide/one-address.md');

/** As the page counts them. */
const tokensOf = (tools: readonly object[]): number => JSON.stringify(tools).length / 4;

test('the page names the tokens of the tools of published servers, and of those that search', (t) => {
  const listed = PUBLISHED_TOOLS.map(({ server, name, ...tool }) => ({ name: `${server}__${name}`, ...tool }));
  const [, servers, tools, tokens] = /\| (\d+) published servers \| (\d+) \| ([\d,]+) \|/.exec(page) ?? [];
  t.is(Number(servers), Object.keys(SERVERS).length);
  t.is(Number(tools), listed.length);
  t.is(Number(tokens?.replace(',', '')), Math.round(tokensOf(listed) / 1000) * 1000);
  const [, searching, fewer] = /`--aggregate=search` \| (\d+) \| (\d+) \|/.exec(page) ?? [];
  t.is(Number(searching), SEARCH_TOOL_DEFINITIONS.length);
  t.is(Number(fewer), Math.round(tokensOf(SEARCH_TOOL_DEFINITIONS) / 100) * 100);
});
