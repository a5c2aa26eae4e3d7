/** Reports what a server speaks: that of the command line, or the reference server. */
import { probe } from 'mcp-portage';

const [command = 'npx', ...args] = process.argv.slice(2);
const reference = ['-y', '@modelcontextprotocol/server-everything'];
const report = await probe({ command, args: args.length > 0 ? args : reference }, { timeout: '1m' });

for (const { transport, era, revision, works } of report.offers) {
  console.log(`${works ? 'works' : 'fails'}: ${era} era over ${transport} ${revision ?? ''}`);
}
console.log(report.verdict);
