/** Adapts Markdown that is written for GitHub to VitePress. */
import { addressInRepository, anchorOf, isPage, targetOf } from './pages.ts';

/** The parts of markdown-it's tokens and parser that are used here. */
interface Token {
  readonly type: string;
  content: string;
  tag: string;
  readonly children: readonly Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
  attrs: [string, string][] | null;
}
interface State {
  readonly tokens: readonly Token[];
  readonly env: { readonly relativePath: string };
}
interface Parser {
  readonly core: { readonly ruler: { push(name: string, rule: (state: State) => void): void } };
}

/** A page of this name stands for its folder, on GitHub and on the site. */
export const toSite = (path: string): string => path.replace(/(^|\/)README\.md$/, '$1index.md');

/** Where a page is on the site. */
export const addressOf = (path: string): string => `/${toSite(path).replace(/(index)?\.md$/, '')}`;

/**
 * @param repository the address of the repository. Undefined in a local build, where links to files that are no pages become text.
 */
export function createMarkdownOptions(repository: string | undefined) {
  return {
    anchor: { slugify: anchorOf },
    // GitHub has no attributes in braces.
    attrs: { disable: true },
    config(parser: Parser): void {
      parser.core.ruler.push('repository', ({ tokens, env: { relativePath } }) => {
        for (const token of tokens) {
          if (token.type === 'html_block') token.content = replacePictures(token.content);
          let isText = false;
          for (const child of token.children ?? []) {
            if (child.type === 'link_open') isText = !convertLink(child, relativePath, repository);
            else if (child.type === 'link_close' && isText) child.tag = 'span';
            // Double braces in code are text, no expression of Vue.
            else if (child.type === 'code_inline') child.attrSet('v-pre', '');
          }
        }
      });
    },
  };
}

/** Returns false if the link has become text. */
function convertLink(token: Token, page: string, repository: string | undefined): boolean {
  const target = targetOf(token.attrGet('href') ?? '', page);
  if (target === undefined) return true;
  const { path, anchor } = target;
  if (isPage(path)) {
    token.attrSet('href', `/${toSite(path)}${anchor}`);
    return true;
  }
  token.attrSet('href', addressInRepository(path, repository ?? '') + anchor);
  if (repository !== undefined) return true;
  token.tag = 'span';
  token.attrs = null;
  return false;
}

const PICTURE =
  /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*<\/picture>/g;

/** The theme of the site may be another one than that of the system, which `<picture>` asks for. */
function replacePictures(html: string): string {
  return html.replaceAll(PICTURE, (_, dark: string, alt: string, light: string) =>
    [
      ['only-light', light],
      ['only-dark', dark],
    ]
      .map(
        ([name, file = '']) => `<img class="${name}" alt="${alt}" src="${file.startsWith('.') ? file : `./${file}`}">`,
      )
      .join(''),
  );
}

/** Chooses the picture of a theme, and makes the language names of code blocks dark enough to read. */
export const STYLE =
  '.dark .only-light,html:not(.dark) .only-dark{display:none}html:root{--vp-code-lang-color:var(--vp-c-text-2)}';
