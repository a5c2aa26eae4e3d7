/**
 * Takes the types out of modules as Node loads them, with the compiler of the build. Each test file is a process of its
 * own, so this is cheap: only our own files go through it, and what was compiled is kept until its source changes.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isTextFile } from './text-files.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const CACHE = fileURLToPath(new URL('../node_modules/.cache/mcp-portage/', import.meta.url));
const OPTIONS = { loader: 'ts', format: 'esm', target: 'node20.19', sourcemap: 'inline', sourcesContent: false };

/** Called by Node for each module: https://nodejs.org/api/module.html#loadurl-context-nextload */
export async function load(url, context, nextLoad) {
  if (isTextFile(url)) return loadText(fileURLToPath(url));
  if (!url.endsWith('.ts')) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const text = await readFile(path, 'utf8');
  // At the end, where it moves no line.
  const mark = `//${createHash('sha256')
    .update(JSON.stringify([OPTIONS, text]))
    .digest('base64url')}\n`;
  const place = `${CACHE}${relative(ROOT, path)}.js`;
  const kept = await readFile(place, 'utf8').catch(() => '');
  const source = kept.endsWith(mark) ? kept : (await compile(path, text)) + mark;
  // Another user than the one who installed the packages may not write there, and can do without.
  if (source !== kept) await keep(place, source).catch(() => undefined);
  return { format: 'module', source, shortCircuit: true };
}

async function loadText(path) {
  const text = await readFile(path, 'utf8');
  return { format: 'module', source: `export default ${JSON.stringify(text)};`, shortCircuit: true };
}

async function compile(path, text) {
  // Loaded only here: mostly nothing has changed.
  const { transform } = await import('esbuild');
  return (await transform(text, { ...OPTIONS, sourcefile: basename(path) })).code;
}

/** Whole at once: others may read it meanwhile. */
async function keep(place, source) {
  await mkdir(dirname(place), { recursive: true });
  const draft = `${place}.${process.pid}`;
  await writeFile(draft, source);
  await rename(draft, place);
}
