/** A web server of the Fetch standard, here Hono's, that serves an MCP server at /mcp. */
import { serve } from '@hono/node-server';
import { createBridge } from 'mcp-portage';

const bridge = await createBridge({
  server: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
  // A request of that standard does not say where it arrived, so declare who may call.
  host: '0.0.0.0',
  allowAnonymous: true,
});

const options = { fetch: bridge.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' };
const server = serve(options, ({ port }) => console.log(`http://127.0.0.1:${port}/mcp`));

process.once('SIGTERM', async () => {
  server.close();
  await bridge.close();
});
