/** A Fastify app that also serves an MCP server, at /tools/mcp and for older clients at /tools/sse. */
import Fastify from 'fastify';
import { createBridge } from 'mcp-portage';

const bridge = await createBridge({
  server: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
  // Fastify leaves it in the URL.
  prefix: '/tools',
});

// Fastify keeps unused connections for 72 seconds, and waits for them when it closes.
const app = Fastify({ keepAliveTimeout: 5_000 });
app.get('/', async () => ({ app: 'mine' }));
await app.register(async (tools) => {
  // The bridge reads bodies itself.
  tools.removeAllContentTypeParsers();
  tools.addContentTypeParser('*', (_request, _payload, done) => done(null));
  tools.all('/tools/*', (request, reply) => {
    if (bridge.handle(request.raw, reply.raw)) reply.hijack();
    else reply.callNotFound();
  });
});

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' });
console.log(`${address}/tools/mcp`);

process.once('SIGTERM', async () => {
  await bridge.close();
  await app.close();
});
