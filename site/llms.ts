/** The lists for language models, in the form of https://llmstxt.org. */
import { readFileSync } from 'node:fs';
import type { Page, Section } from './navigation.ts';
import { addressInRepository, isPage, ROOT, targetOf } from './pages.ts';

/** A section of this name can be left out by a reader that has little room. */
const OPTIONAL = 'Optional';
const FOR_CONTRIBUTORS = 'For contributors';

/** The list of the pages, which are beside it as Markdown. */
export function renderLlmsTxt(sections: readonly Section[]): string {
  const { name, description } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
  const lists = sections.map(({ title, pages }) => {
    const heading = title === FOR_CONTRIBUTORS ? OPTIONAL : title;
    return `## ${heading}\n\n${pages.map(renderEntry).join('\n')}`;
  });
  return `# ${name}\n\n> ${description}\n\n- [README](README.md): what it is, with a quick start\n\n${lists.join('\n\n')}\n`;
}

function renderEntry({ path, title, purpose }: Page): string {
  return `- [${title}](${path})${purpose === undefined ? '' : `: ${purpose}`}`;
}

/** The text of everything that users read, in the order of the list. */
export function renderLlmsFullTxt(sections: readonly Section[], repository: string | undefined): string {
  const listed = sections.filter(({ title }) => title !== FOR_CONTRIBUTORS).flatMap(({ pages }) => pages);
  const paths = ['README.md', ...listed.map(({ path }) => path)];
  return paths.map((path) => `<!-- ${path} -->\n\n${readWithLinksFromTop(path, repository)}`).join('\n');
}

/** The text of a page whose links are paths from the top, so that the page can be read in another place. */
export function readWithLinksFromTop(path: string, repository: string | undefined): string {
  return withLinks(path, ({ path: file, anchor }) =>
    isPage(file) || repository === undefined ? file + anchor : addressInRepository(file, repository) + anchor,
  );
}

/** The text of a page at its own address, where only links to files that are no pages change. */
export function readForSite(path: string, repository: string | undefined): string {
  return withLinks(path, ({ path: file, anchor }, link) =>
    isPage(file) || repository === undefined ? link : addressInRepository(file, repository) + anchor,
  );
}

function withLinks(path: string, convert: (target: { path: string; anchor: string }, link: string) => string): string {
  const text = readFileSync(ROOT + path, 'utf8');
  return text.replaceAll(/(\]\(|(?:src|srcset)=")([^)\s"]+)/g, (_, before: string, link: string) => {
    const target = targetOf(link, path);
    return before + (target === undefined ? link : convert(target, link));
  });
}
