/** The list of all pages, which is docs/README.md: people read it there, and the site and `llms.txt` are made from it. */
import { readFileSync } from 'node:fs';
import { ROOT, targetOf } from './pages.ts';

export interface Page {
  /** From the top of the repository. */
  readonly path: string;
  readonly title: string;
  /** What a reader wants who needs it. Undefined: the title says it. */
  readonly purpose: string | undefined;
}

export interface Section {
  readonly title: string;
  readonly pages: readonly Page[];
}

const LIST = 'docs/README.md';

/** Every page once: where several sections name it, in the last one. */
export function readNavigation(): readonly Section[] {
  const [, ...parts] = readFileSync(ROOT + LIST, 'utf8').split(/^## /m);
  const sections = parts.map((part) => {
    const [title = '', ...lines] = part.split('\n');
    return { title: title.trim(), pages: lines.flatMap(readLine) };
  });
  const last = new Map(sections.flatMap(({ pages }) => pages.map((page) => [page.path, page])));
  return sections.map(({ title, pages }) => ({ title, pages: pages.filter((page) => last.get(page.path) === page) }));
}

/** A row `| purpose | links |` of a table, or links in a text. */
function readLine(line: string): readonly Page[] {
  const purpose = /^\| (.+?) \|/.exec(line)?.[1];
  return [...line.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].flatMap(([, title = '', link = '']) => {
    const target = targetOf(link, LIST);
    return target === undefined ? [] : [{ path: target.path, title, purpose }];
  });
}
