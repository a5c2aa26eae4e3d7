/** A child process and the bytes to and from it: what is written in one turn of the event loop leaves in one write. */
import { spawn } from 'node:child_process';
import { createLineSplitter } from '../server/lines.js';

const NEWLINE = Buffer.from('\n');

export function startChild([command, ...args], onLine, onChunkEnd) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => undefined);
  const split = createLineSplitter(onLine);
  child.stdout.on('data', (chunk) => {
    split(chunk);
    onChunkEnd();
  });
  child.on('exit', () => process.exit(1));
  return {
    send: createBatch((bytes) => child.stdin.write(bytes)),
    end: () => {
      child.removeAllListeners('exit');
      child.stdin.end();
    },
  };
}

/** Lines of one turn of the event loop, handed on as one. */
export function createBatch(write) {
  let pending = [];
  const flush = () => {
    write(Buffer.concat(pending));
    pending = [];
  };
  return (line) => {
    if (pending.length === 0) setImmediate(flush);
    pending.push(line, NEWLINE);
  };
}
