/** The site: the same Markdown files that GitHub shows, with navigation and search. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readForSite, renderLlmsFullTxt, renderLlmsTxt } from './llms.ts';
import { addressOf, createMarkdownOptions, STYLE, toSite } from './markdown.ts';
import { readNavigation } from './navigation.ts';
import { listPages, listPictures, ROOT } from './pages.ts';

const { name, description } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const repository = GITHUB_REPOSITORY === undefined ? undefined : `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;

const sections = readNavigation();

/** VitePress finds its packages only from a folder beside them, so it gets a copy of the pages and their pictures. */
const COPY = 'pages';

function copyPages(): void {
  const folder = `${ROOT}site/${COPY}`;
  rmSync(folder, { recursive: true, force: true });
  for (const path of [...listPages(), ...listPictures()]) cpSync(ROOT + path, join(folder, toSite(path)));
}

copyPages();

export const config = {
  title: name,
  description,
  srcDir: COPY,
  outDir: '../build/site',
  cacheDir: '../build/site-cache',
  cleanUrls: true,
  head: [
    ['style', {}, STYLE],
    // Without one, browsers ask for /favicon.ico.
    ['link', { rel: 'icon', href: 'data:,' }],
  ],
  markdown: createMarkdownOptions(repository),
  themeConfig: {
    nav: [
      { text: 'Documents', link: '/docs/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      items: pages.map(({ path, title: text }) => ({ text, link: addressOf(path) })),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
    ...(repository === undefined ? {} : { socialLinks: [{ icon: 'github', link: repository }] }),
  },
  /** Each page is there as Markdown, too, beside the lists for language models. */
  buildEnd({ outDir }: { readonly outDir: string }): void {
    const files = [
      ...listPages().map((path) => [path, readForSite(path, repository)] as const),
      ['llms.txt', renderLlmsTxt(sections)] as const,
      ['llms-full.txt', renderLlmsFullTxt(sections, repository)] as const,
    ];
    for (const [path, text] of files) {
      const file = join(outDir, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  },
};
