/** Brings the generated parts of the documents up to date; tests fail when they are not. Needs a current build. */
import { readFile, writeFile } from 'node:fs/promises';
import { COMPATIBILITY_PARTS } from './compatibility-tables.ts';
import { renderConfigSchema } from './config-schema.ts';
import { generatedPart, withGeneratedPart } from './generated-part.ts';
import { renderLibraryOptions } from './library-options.ts';
import { renderManPage } from './man-page.ts';
import { renderOptionsTable } from './options-table.ts';
import { asBlock, PROBES, withoutTimes } from './probe-reports.ts';

const README = new URL('../README.md', import.meta.url);
const COMPATIBILITY = new URL('../docs/reference/compatibility.md', import.meta.url);
const MAN_PAGE = new URL('../man/mcp-portage.1', import.meta.url);
const LIBRARY_OPTIONS = new URL('../src/library/option-types.ts', import.meta.url);
const CONFIG_SCHEMA = new URL('../docs/reference/config.schema.json', import.meta.url);

await writeFile(CONFIG_SCHEMA, renderConfigSchema());
await writeFile(MAN_PAGE, renderManPage());
await writeFile(LIBRARY_OPTIONS, renderLibraryOptions());

let compatibility = await readFile(COMPATIBILITY, 'utf8');
for (const [name, render] of Object.entries(COMPATIBILITY_PARTS)) {
  compatibility = withGeneratedPart(compatibility, name, render());
}
await writeFile(COMPATIBILITY, compatibility);

let readme = withGeneratedPart(await readFile(README, 'utf8'), 'options', renderOptionsTable());
for (const [name, probe] of Object.entries(PROBES)) {
  const block = asBlock(await probe());
  // Other times alone are no reason for a change.
  if (withoutTimes(block) !== withoutTimes(generatedPart(readme, name)))
    readme = withGeneratedPart(readme, name, block);
}
await writeFile(README, readme);
