import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const url = new URL(process.argv[2] ?? 'http://127.0.0.1:8000/mcp');
const client = new Client({ name: 'example', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(new StreamableHTTPClientTransport(url));
const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
console.log(client.getNegotiatedProtocolVersion(), content);
await client.close();
