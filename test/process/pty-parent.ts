/** Starts two children on terminals, prints their pids and stays until it is killed. */
import { createPtyStarter } from '../../src/process/pty-child.ts';
import { scriptSpec } from './child-spec.ts';
import { createTestDeps } from './collected-log.ts';
import { RecordingListener } from './recording-listener.ts';

const start = createPtyStarter(createTestDeps().deps);
const listeners = [new RecordingListener(), new RecordingListener()];
// They end with their input and for no other reason.
const children = listeners.map((listener) =>
  start(scriptSpec('process.on("SIGHUP", () => {}); process.stdin.resume(); console.log("ready")'), listener),
);
const poll = setInterval(() => {
  if (!listeners.every(({ text }) => text.includes('ready'))) return;
  clearInterval(poll);
  console.log(JSON.stringify(children.map(({ pid }) => pid)));
}, 10);
setInterval(() => undefined, 60_000);
