/**
 * Checks .github/workflows, or the files that are named, with the parser of GitHub: it knows the members, the permissions,
 * the functions of expressions, and what a step or job refers to.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = '.github/workflows';

const { validate, TextDocument } = await loadParser();
const given = process.argv.slice(2);
const files = given.length > 0 ? given : readdirSync(join(ROOT, FOLDER)).map((name) => join(ROOT, FOLDER, name));
let mistakes = 0;
for (const file of files) {
  // The parser tells a workflow from an action by its folder.
  const document = TextDocument.create(`file:///${FOLDER}/workflow.yml`, 'yaml', 1, readFileSync(file, 'utf8'));
  for (const { range, message } of await validate(document, {})) {
    console.error(`${file}:${range.start.line + 1}: ${message}`);
    mistakes += 1;
  }
}
console.log(`Checked ${files.length} workflows, found ${mistakes} mistakes.`);
process.exitCode = mistakes === 0 ? 0 : 1;

/** The parser imports JSON without saying so, which Node refuses; esbuild does not. */
async function loadParser() {
  const contents = `
    export { validate } from '@actions/languageservice';
    export { TextDocument } from 'vscode-languageserver-textdocument';`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
  });
  const module = { exports: {} };
  compileFunction(outputFiles[0].text, ['module', 'require'])(module, createRequire(import.meta.url));
  return module.exports;
}
