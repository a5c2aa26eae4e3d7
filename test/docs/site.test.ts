/** The site itself is built by `npm run site`, which fails on links to pages that do not exist; here is what it is built from. */
import test from 'ava';
import { readForSite, renderLlmsFullTxt, renderLlmsTxt } from '../../site/llms.ts';
import { addressOf, createMarkdownOptions } from '../../site/markdown.ts';
import { readNavigation } from '../../site/navigation.ts';
import { addressInRepository, isPage, listPages, listPictures } from '../../site/pages.ts';
import { documentAt } from './documents.ts';

const REPOSITORY = 'https://example.com/owner/name';
const sections = readNavigation();
const listed = sections.flatMap(({ pages }) => pages.map(({ path }) => path));

test('the navigation has every guide and every reference once, in the sections of docs/README.md', (t) => {
  t.deepEqual(
    sections.map(({ title }) => title),
    [...documentAt('docs/README.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title),
  );
  for (const { title, pages } of sections) t.true(pages.length > 0, title);
  const needed = listPages().filter((path) => /^docs\/(guide|reference)\//.test(path));
  t.deepEqual(
    needed.filter((path) => !listed.includes(path)),
    [],
  );
  t.deepEqual(listed, [...new Set(listed)]);
  t.deepEqual(
    listed.filter((path) => !listPages().includes(path)),
    [],
  );
});

test('llms.txt has a title, a summary and the pages of the navigation, with what each is for', (t) => {
  const [title, , summary, , ...rest] = renderLlmsTxt(sections).split('\n');
  t.is(title, '# mcp-portage');
  t.regex(summary ?? '', /^> Joins any MCP client to any MCP server/);
  const lines = rest.filter((line) => line !== '');
  for (const line of lines) t.regex(line, /^(## .+|- \[[^\]]+\]\([^)]+\.md\)(: .+)?)$/);
  const linked = lines.flatMap((line) => /\]\(([^)]+)\)/.exec(line)?.[1] ?? []);
  t.deepEqual(linked, ['README.md', ...listed]);
  t.true(lines.includes('- [Log in](docs/guide/log-in.md): log in to a server'));
  // What a reader with little room leaves out.
  t.true(lines.indexOf('## Optional') > lines.indexOf('## To look up'));
});

test('llms-full.txt has the text of all pages for users, whose links lead from the top', (t) => {
  const full = renderLlmsFullTxt(sections, REPOSITORY);
  const parts = full.split(/^<!-- (\S+\.md) -->$/m);
  const paths = parts.filter((_, index) => index % 2 === 1);
  t.deepEqual(paths, ['README.md', ...listed.filter((path) => /^docs\/(guide|reference)\//.test(path))]);
  for (const [index, path] of paths.entries()) {
    const [heading] = documentAt(path).split('\n');
    t.true(parts[2 * index + 2]?.includes(`\n${heading}\n`), path);
  }
  const links = [...full.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  t.true(links.length > 100);
  for (const link of links.filter((each) => !/^(https?:|#)/.test(each))) {
    const [path = ''] = link.split('#');
    t.true(isPage(path) || listPictures().includes(path), link);
  }
});

test('links to files that are no pages lead to the repository, and a link to nothing fails the build', (t) => {
  t.is(addressInRepository('examples/compose.yaml', REPOSITORY), `${REPOSITORY}/blob/HEAD/examples/compose.yaml`);
  t.is(addressInRepository('examples/clients', REPOSITORY), `${REPOSITORY}/tree/HEAD/examples/clients`);
  t.throws(() => convert('../../examples/missing.yaml', undefined), { message: /examples\/missing\.yaml/ });
  t.throws(() => addressInRepository('examples/missing.yaml', REPOSITORY), { message: /examples\/missing\.yaml/ });
  t.true(
    readForSite('docs/guide/containers.md', REPOSITORY).includes(`](${REPOSITORY}/blob/HEAD/examples/compose.yaml)`),
  );
});

interface Token {
  type: string;
  tag: string;
  content: string;
  children: Token[] | null;
  attrs: [string, string][] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

function token(type: string, more: Partial<Token> = {}): Token {
  return {
    type,
    tag: '',
    content: '',
    children: null,
    attrs: null,
    attrGet(name) {
      return this.attrs?.find(([key]) => key === name)?.[1] ?? null;
    },
    attrSet(name, value) {
      this.attrs = [...(this.attrs ?? []).filter(([key]) => key !== name), [name, value]];
    },
    ...more,
  };
}

/** What becomes of a link of a guide. */
function convert(href: string, repository: string | undefined) {
  const link = token('link_open', { tag: 'a', attrs: [['href', href]] });
  const end = token('link_close', { tag: 'a' });
  const tokens = [token('inline', { children: [link, end] })];
  const rule = (_: string, run: (state: { tokens: Token[]; env: { relativePath: string } }) => void) =>
    run({ tokens, env: { relativePath: 'docs/guide/containers.md' } });
  createMarkdownOptions(repository).config({ core: { ruler: { push: rule } } });
  return [link.tag, link.attrGet('href'), end.tag];
}

test('a link of a page leads to the page of the site, to the repository, or nowhere where its address is not known', (t) => {
  t.deepEqual(convert('../README.md#to-look-up', undefined), ['a', '/docs/index.md#to-look-up', 'a']);
  t.deepEqual(convert('https://example.com/x.md', undefined), ['a', 'https://example.com/x.md', 'a']);
  const compose = '../../examples/compose.yaml';
  t.deepEqual(convert(compose, REPOSITORY), ['a', `${REPOSITORY}/blob/HEAD/examples/compose.yaml`, 'a']);
  t.deepEqual(convert(compose, undefined), ['span', null, 'span']);
  t.is(addressOf('docs/internals/decisions/README.md'), '/docs/internals/decisions/');
  t.is(addressOf('docs/guide/serve.md'), '/docs/guide/serve');
});
