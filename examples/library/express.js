/** An Express app that also serves an MCP server, at /tools/mcp and for older clients at /tools/sse. */
import express from 'express';
import { createBridge } from 'mcp-portage';

const bridge = await createBridge({
  server: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
});

const app = express();
app.use('/tools', bridge.handle);
app.use(express.json());
app.get('/', (_request, response) => response.json({ app: 'mine' }));

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/tools/mcp`);
});

process.once('SIGTERM', async () => {
  server.close();
  await bridge.close();
});
