/** argv: 'legacy' or 'modern'. The MCP server behind the bridges, on stdio: one write a message, as servers do. */
import { answer } from './answers.js';
import { createLineSplitter } from './lines.js';

const era = process.argv[2] ?? 'legacy';

const emit = (message) => {
  if (typeof message === 'string') process.stdout.write(`${message}\n`);
  else process.stdout.write(Buffer.concat([message, Buffer.from('\n')]));
};
process.stdin.on(
  'data',
  createLineSplitter((line) => answer(line, era, emit)),
);
process.stdin.on('end', () => process.exit(0));
