/** The aggregate of published servers, with official clients of both eras. */
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { connectTo, ERAS, namesOf } from '../aggregate/aggregate-world.ts';
import { EVERYTHING, FILESYSTEM, NODE, serveFile, textOf } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';

for (const era of ERAS) {
  test(`${era}: two published servers are one, and one of them asks the client in the middle of a call`, async (t) => {
    const folder = await createConfigFolder(t);
    await folder.write('note.txt', 'What is written here.');
    const file = await folder.write('mcp.json', {
      mcpServers: {
        everything: { command: NODE, args: [EVERYTHING] },
        files: { command: NODE, args: [FILESYSTEM, folder.path], portage: { prefix: 'fs' } },
      },
    });
    const bridge = await serveFile(t, file, ['--aggregate']);
    const answer = { model: 'none', role: 'assistant', content: { type: 'text', text: 'sampled here' } };
    const client = await connectTo(t, new URL('/mcp', bridge.url), era, {
      capabilities: { sampling: {} },
      prepare: (own) =>
        own.setRequestHandler(
          era === 'legacy' ? CreateMessageRequestSchema : 'sampling/createMessage',
          async () => answer,
        ),
    });
    const names = namesOf((await client.listTools()).tools);
    t.true(names.includes('everything__echo') && names.includes('fs__read_text_file'));
    const read = await client.callTool({ name: 'fs__read_text_file', arguments: { path: `${folder.path}/note.txt` } });
    t.is(textOf(read), 'What is written here.');
    t.is(textOf(await client.callTool({ name: 'everything__echo', arguments: { message: 'hi' } })), 'Echo: hi');
    const sampled = await client.callTool({ name: 'everything__trigger-sampling-request', arguments: { prompt: 'x' } });
    t.regex(textOf(sampled), /sampled here/);
    const [first] = (await client.listResources()).resources;
    t.like(await client.readResource({ uri: first?.uri }), { contents: [{ uri: first?.uri }] });
    t.true((await client.listPrompts()).prompts.every(({ name }) => name.startsWith('everything__')));
  });
}
