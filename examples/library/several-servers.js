/** Several servers on a port of their own: each starts with its first client. */
import { tmpdir } from 'node:os';
import { serve } from 'mcp-portage';

const running = await serve({
  port: Number(process.env.PORT ?? 8000),
  requestTimeout: '2m',
  servers: {
    everything: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
    files: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-filesystem', tmpdir()],
      portage: { excludeTool: 'write_*' },
    },
  },
});
for (const { url } of running.urls) console.log(url);

process.once('SIGTERM', () => running.close());
