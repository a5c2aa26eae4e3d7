/** Notices an endless loop, which nothing in the same thread can. */
import { Worker } from 'node:worker_threads';

/** No input takes as long on any machine. */
const SILENCE_MS = 60_000;

export interface Watchdog {
  /** Something has come to an end. */
  readonly beat: () => void;
  /** What is said if the loop is in what comes now. */
  watch(name: string): void;
  stop(): void;
}

const PROGRAM = `
const { parentPort, workerData: { beats, silenceMs } } = require('node:worker_threads');
let name = '';
let seen = -1;
parentPort.on('message', (next) => { name = next; });
setInterval(() => {
  const now = Atomics.load(beats, 0);
  if (now === seen) {
    console.error('FAILED: hangs in ' + name);
    process.kill(process.pid, 'SIGKILL');
  }
  seen = now;
}, silenceMs);
`;

export function startWatchdog(): Watchdog {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(PROGRAM, { eval: true, workerData: { beats, silenceMs: SILENCE_MS } });
  return {
    beat: () => void Atomics.add(beats, 0, 1),
    watch: (name) => {
      Atomics.add(beats, 0, 1);
      worker.postMessage(name);
    },
    stop: () => void worker.terminate(),
  };
}
