import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { filesystem } from './servers/commands.ts';
import { textOf } from './text-of.ts';
import { VARIANTS } from './variants.ts';

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: server-filesystem reads a file`, async (t) => {
    // The server compares real paths; the temporary folder may be a link.
    const root = await realpath(await mkdtemp(join(tmpdir(), 'mcp-portage-files-')));
    t.teardown(() => rm(root, { recursive: true }));
    const path = join(root, 'note.txt');
    await writeFile(path, 'written outside, read through the bridge\n');

    const bridge = await startBridge(['--isolation', variant.isolation, '--', ...filesystem(root)]);
    t.teardown(bridge.stop);
    const { client, close } = await variant.connect(bridge);
    t.teardown(close);
    const result = await client.callTool({ name: 'read_text_file', arguments: { path } });
    t.is(textOf(result), 'written outside, read through the bridge\n');
  });
}
