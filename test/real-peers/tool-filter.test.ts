/** Tools that are hidden, with official clients and a server of the official SDK, in every pair of eras. */
import test from 'ava';
import { namesOf, serverOf, WAYS } from './sdk-clients.ts';

const FILTER = ['--include-tool', 'test_*', '--exclude-tool', '*_content', '--exclude-tool', '{test_elicitation,x}*'];
const SHOWN = 'test_simple_text';
const HIDDEN = 'test_image_content';

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    for (const [way, open] of Object.entries(WAYS)) {
      test.serial(
        `${clientEra} client → ${serverEra} server, ${way}: hidden tools are not listed and not called`,
        async (t) => {
          const names = await namesOf(await open(t, clientEra, [...FILTER, ...serverOf(serverEra)]));
          t.true(names.includes(SHOWN));
          t.true(
            names.every((name) => /^test_/.test(name) && !/_content$|^test_elicitation/.test(name)),
            names.join(),
          );
          const client = await open(t, clientEra, ['--exclude-tool', HIDDEN, ...serverOf(serverEra)]);
          const all = await namesOf(client);
          t.true(all.length > names.length);
          t.false(all.includes(HIDDEN));
          await t.throwsAsync(() => client.callTool({ name: HIDDEN }), { message: /Unknown tool: test_image_content/ });
          t.regex(JSON.stringify(await client.callTool({ name: SHOWN })), /simple text response/);
        },
      );
    }
  }
}
