import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { anchorOf } from '../../site/pages.ts';
import { DOCUMENTS, ROOT } from './documents.ts';

interface Link {
  /** From the folder of the project. */
  readonly path: string;
  readonly anchor: string;
}

/** Relative ones, of Markdown and of pictures in HTML. */
function linksIn(path: string, text: string): readonly Link[] {
  const prose = withoutCode(text);
  const written = [...prose.matchAll(/\]\(([^)\s]+)\)/g), ...prose.matchAll(/(?:src|srcset|href)="([^"]+)"/g)];
  return written.flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [file = '', anchor = ''] = target.split('#');
    const found = file === '' ? path : normalize(join(dirname(path), file)).replaceAll('\\', '/');
    return [{ path: found, anchor }];
  });
}

/** The names under which GitHub and npm know the headings of a page. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of withoutCode(text).matchAll(/^#+ (.+)$/gm)) {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const anchor = anchorOf(plain);
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

const withoutCode = (text: string): string => text.replaceAll(/^( *)```.*?^\1```$/gms, '');

for (const { path, text } of DOCUMENTS) {
  test(`links of ${path} lead to files and headings that exist`, (t) => {
    for (const link of linksIn(path, text)) {
      t.true(existsSync(fileURLToPath(new URL(link.path, ROOT))), `${link.path} does not exist`);
      if (link.anchor === '') continue;
      const target = DOCUMENTS.find((document) => document.path === link.path);
      t.true(target !== undefined && anchorsOf(target.text).has(link.anchor), `${link.path}#${link.anchor}`);
    }
    t.pass();
  });
}

test('every page of the documents can be found from the README', (t) => {
  const found = new Set(['README.md']);
  for (const path of found) {
    const document = DOCUMENTS.find((each) => each.path === path);
    for (const link of document === undefined ? [] : linksIn(path, document.text)) found.add(link.path);
  }
  const pages = DOCUMENTS.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
  t.deepEqual(
    pages.filter((path) => !found.has(path)),
    [],
  );
});
