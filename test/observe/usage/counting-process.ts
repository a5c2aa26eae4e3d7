/** Counts a call every millisecond until its stdin ends or it is killed: `counting-process.ts FOLDER CLIENT`. */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { thisProcess } from '../../../src/io/owning-process.ts';
import { UsageFile } from '../../../src/observe/usage/usage-file.ts';
import { UsageTable } from '../../../src/observe/usage/usage-table.ts';
import { CURSOR, call, SERVED } from './usage-world.ts';

const [stateDirectory = '', name = ''] = process.argv.slice(2);
const table = new UsageTable({ wallClock: Date.now, served: SERVED });
const clock = {
  now: () => performance.now(),
  after(delayMs: number, run: () => void) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
  every(periodMs: number, run: () => void) {
    // What takes seconds in a bridge takes milliseconds here.
    const timer = setInterval(run, periodMs / 200);
    return () => clearInterval(timer);
  },
};
const randomId = (): string => randomBytes(16).toString('base64url');
const log = pino({ level: 'warn' }, pino.destination(2));
const file = new UsageFile({
  table,
  stateDirectory,
  self: thisProcess(),
  deps: { clock, log, randomId, wallClock: Date.now },
});

let calls = 0;
const timer = setInterval(() => {
  calls += 1;
  call(table, { ...CURSOR, name });
  process.stdout.write(`${calls}\n`);
}, 1);
process.stdin.resume();
process.stdin.once('end', async () => {
  clearInterval(timer);
  await file.close();
});
