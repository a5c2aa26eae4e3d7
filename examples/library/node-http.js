/** A server of node:http that also serves an MCP server, at /mcp and for older clients at /sse, and logs who calls what. */
import { createServer } from 'node:http';
import { createBridge } from 'mcp-portage';

const bridge = await createBridge({
  server: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
  observer: {
    callEnded: ({ client, method, tool }, { outcome, durationMs }) => {
      console.error(`${client.name} ${method} ${tool ?? ''} ${outcome.kind} ${Math.round(durationMs)} ms`);
    },
  },
});

const server = createServer((request, response) => {
  if (bridge.handle(request, response)) return;
  response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"app":"mine"}');
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/mcp`);
});

process.once('SIGTERM', async () => {
  server.close();
  await bridge.close();
});
