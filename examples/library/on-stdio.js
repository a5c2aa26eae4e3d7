/** A program that MCP clients start: it serves them a server of its choice, on its own stdin and stdout. */
import { connect } from 'mcp-portage';

const connection = await connect({
  client: 'stdio',
  server: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
});

process.once('SIGTERM', () => connection.close());
const error = await connection.ended;
if (error !== undefined) console.error(`${error.code}: ${error.message}`);
// An open stdin would keep the process.
process.stdin.destroy();
