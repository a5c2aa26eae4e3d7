/** Which files of the repository are pages of the site, and where the links of a page lead. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Everything else at the top of the repository is no part of the site. */
const AT_THE_TOP = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs'];

export function isPage(path: string): boolean {
  const [top = ''] = path.split('/');
  return AT_THE_TOP.includes(top) && path.endsWith('.md');
}

/** All pages, by their paths from the top of the repository. */
export function listPages(): readonly string[] {
  return listFiles().filter(isPage);
}

export function listPictures(): readonly string[] {
  return listFiles().filter((path) => path.endsWith('.svg'));
}

function listFiles(): readonly string[] {
  const files = AT_THE_TOP.flatMap((name) =>
    name.endsWith('.md')
      ? name
      : readdirSync(ROOT + name, { recursive: true, encoding: 'utf8' }).map((below) => `${name}/${below}`),
  );
  return files.map((path) => path.replaceAll('\\', '/'));
}

export interface Target {
  /** From the top of the repository. */
  readonly path: string;
  /** With its `#`, or empty. */
  readonly anchor: string;
}

/** Undefined: an address, or a heading of the same page. */
export function targetOf(link: string, page: string): Target | undefined {
  const [, file = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(link) ?? [];
  if (file === '' || /^[a-z]+:/.test(file)) return undefined;
  return { path: posix.normalize(posix.join(posix.dirname(page), file)), anchor };
}

/**
 * The address of a file that is no page.
 *
 * @param repository the address of the repository
 * @throws Error if there is no such file
 */
export function addressInRepository(path: string, repository: string): string {
  if (!existsSync(ROOT + path)) throw new Error(`a link leads to ${path}, which does not exist`);
  return `${repository}/${statSync(ROOT + path).isDirectory() ? 'tree' : 'blob'}/HEAD/${path}`;
}

/** The name under which GitHub knows a heading, which the links of the pages use. */
export function anchorOf(title: string): string {
  const kept = title.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '');
  return kept.replaceAll(' ', '-');
}
