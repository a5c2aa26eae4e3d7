import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../src/errors.ts';
import type { Child, ChildSpec } from '../../src/process/child.ts';
import { createPtyStarter, loadOpenPty } from '../../src/process/pty-child.ts';
import { assertGone, isAlive } from '../support/processes.ts';
import { openPty, ptyTest } from '../support/pseudo-terminal.ts';
import { TYPESCRIPT } from '../support/typescript.ts';
import { waitFor } from '../support/wait-for.ts';
import { fixtureSpec, scriptSpec } from './child-spec.ts';
import { createTestDeps } from './collected-log.ts';
import { RecordingListener } from './recording-listener.ts';

function start(t: ExecutionContext, spec: ChildSpec, starter = createPtyStarter(createTestDeps().deps, openPty)) {
  const listener = new RecordingListener();
  const child = starter(spec, listener);
  t.teardown(async () => {
    child.killNow();
    await child.gone;
  });
  return { child, listener };
}

/** Answers each line with its length; says on stderr when it is ready. */
const COUNT_LINES = `
  let length = 0;
  process.stdin.on('data', (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      console.log(length + end - start);
      length = 0;
      start = end + 1;
    }
    length += chunk.length - start;
  });`;

ptyTest('shows the child a terminal on stdin and stdout, but not on stderr', async (t) => {
  const { listener } = start(t, scriptSpec('console.log([0, 1, 2].map((fd) => require("tty").isatty(fd)).join())'));
  await listener.whenEnded();
  t.is(listener.text.trim(), 'true,true,false');
});

ptyTest('gives the child its environment and nothing else', async (t) => {
  const { listener } = start(t, scriptSpec('console.log(Object.keys(process.env).join())', { env: { ONLY: 'this' } }));
  await listener.whenEnded();
  t.is(listener.text.trim(), 'ONLY');
});

ptyTest('echoes nothing, although it writes before the child is up', async (t) => {
  const { child, listener } = start(t, scriptSpec(COUNT_LINES));
  child.stdin.write('12345\n');
  await waitFor(() => listener.text.includes('\n'));
  t.is(listener.text.trim(), '5');
});

ptyTest('passes control characters on instead of acting on them', async (t) => {
  const { child, listener } = start(t, scriptSpec(COUNT_LINES));
  // What a terminal would take for: interrupt, end of file, stop, kill line, erase, suspend, quit.
  child.stdin.write('a\u0003b\u0004c\u0013d\u0015e\u007ff\u001ag\u001ch\rijk\n');
  await waitFor(() => listener.text.includes('\n'));
  t.is(listener.text.trim(), '19');
});

for (const size of [4095, 4096, 4097, 1024 * 1024, 16 * 1024 * 1024]) {
  ptyTest(`passes a line of ${size} bytes to the child whole`, async (t) => {
    const { child, listener } = start(t, scriptSpec(COUNT_LINES));
    child.stdin.write(Buffer.alloc(size, 'x'));
    child.stdin.write('\n');
    await waitFor(() => listener.text.includes('\n'));
    t.is(listener.text.trim(), String(size));
  });
}

ptyTest('passes what the child writes on whole, up to the last byte before it exits', async (t) => {
  const script = 'process.stdout.write("y".repeat(1048576) + "\\nend\\n", () => process.exit(0))';
  const { listener } = start(t, scriptSpec(script));
  const exit = await listener.whenEnded();
  t.is(exit.code, 0);
  t.is(listener.text.replaceAll('\r', ''), `${'y'.repeat(1_048_576)}\nend\n`);
});

ptyTest('loses nothing of what the child wrote last even if it was paused then', async (t) => {
  const script = 'process.stdin.once("data", () => { require("fs").writeSync(1, "z".repeat(3000)); process.exit(0); })';
  const { child, listener } = start(t, scriptSpec(script));
  child.pauseOutput();
  child.stdin.write('go');
  await assertGone([child.pid ?? 0]);
  t.is(listener.ends, 0);
  child.resumeOutput();
  await listener.whenEnded();
  t.is(listener.byteLength, 3000);
});

ptyTest('splits no characters into nonsense', async (t) => {
  const { listener } = start(
    t,
    scriptSpec('for (const byte of Buffer.from("漢字🚀")) require("fs").writeSync(1, Buffer.of(byte))'),
  );
  await listener.whenEnded();
  t.is(listener.text, '漢字🚀');
});

ptyTest('keeps stderr apart and remembers its last words', async (t) => {
  const { listener } = start(t, fixtureSpec('exits-before-initialize'));
  const exit = await listener.whenEnded();
  t.is(listener.text, '');
  t.is(exit.code, 3);
  t.deepEqual(exit.stderrTail, ['SOME_KEY is not set', 'cannot go on without it']);
});

ptyTest('says when it is full and when there is capacity again', async (t) => {
  const readsOnSignal =
    'process.on("SIGUSR2", () => process.stdin.resume()); console.log("up"); setInterval(() => {}, 60000)';
  const { child, listener } = start(t, scriptSpec(readsOnSignal));
  await waitFor(() => listener.text.includes('up'));
  t.false(child.stdin.write(Buffer.alloc(1_000_000)));
  t.true(child.stdin.writableNeedDrain);
  process.kill(child.pid ?? 0, 'SIGUSR2');
  await once(child.stdin, 'drain');
  t.is(child.stdin.writableLength, 0);
});

ptyTest('ends a child by hanging up', async (t) => {
  const { child, listener } = start(t, scriptSpec('setInterval(() => {}, 60000); console.log("ready")'));
  await waitFor(() => listener.text.includes('ready'));
  await child.terminate();
  t.like(await listener.whenEnded(), { signal: 'SIGHUP', terminated: true });
});

ptyTest('ends a child that ignores everything else with SIGKILL', async (t) => {
  const { child, listener } = start(t, fixtureSpec('ignores-sigterm', [], { graceMs: 100 }));
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize"}\n');
  await waitFor(() => listener.text.includes('\n'));
  await child.terminate();
  t.like(await listener.whenEnded(), { signal: 'SIGKILL' });
});

ptyTest('reports a command that does not exist', async (t) => {
  const { listener } = start(t, { ...scriptSpec(''), command: 'no-such-program' });
  const error = await waitFor(() => listener.error);
  t.is(error.code, 'ERR_UPSTREAM_SPAWN');
});

ptyTest('leaves no child behind when the bridge is killed, siblings or not', async (t) => {
  const parent = spawn(process.execPath, [TYPESCRIPT, fileURLToPath(new URL('./pty-parent.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = await once(createInterface({ input: parent.stdout }), 'line');
  const pids: number[] = JSON.parse(line);
  t.teardown(() => {
    for (const pid of pids.filter((pid) => isAlive(pid))) process.kill(pid, 'SIGKILL');
  });
  t.is(pids.length, 2);
  t.true(pids.every((pid) => isAlive(pid)));
  parent.kill('SIGKILL');
  await assertGone(pids);
});

// Serial: descriptors of other tests would blur the count. Skipped where there is no pseudo-terminal, as above.
(openPty === undefined ? test.serial.skip : test.serial)('closes every descriptor it opened', async (t) => {
  const starter = createPtyStarter(createTestDeps().deps, openPty);
  const lowestFree = async (): Promise<number> => {
    const { listener } = start(t, scriptSpec(''), starter);
    await listener.whenEnded();
    const fd = openSync('/dev/null', 'r');
    closeSync(fd);
    return fd;
  };
  const before = await lowestFree();
  for (let round = 0; round < 5; round++) await lowestFree();
  await waitFor(async () => (await lowestFree()) <= before, { message: 'all descriptors to be closed' });
  t.pass();
});

test('names the package and the way out when it is not installed', (t) => {
  const load = () => {
    throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
  };
  const error = t.throws(() => loadOpenPty(load), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_CONFIG_OPTION');
  if (process.platform !== 'win32') t.regex(error?.message ?? '', /-p @lydell\/node-pty@1 mcp-portage --pty/);
});

test('reports that the system has no terminal left', (t) => {
  const starter = createPtyStarter(createTestDeps().deps, () => {
    throw new Error('openpty(3) failed.');
  });
  const error = t.throws((): Child => starter(scriptSpec(''), new RecordingListener()), { instanceOf: BridgeError });
  t.is(error?.code, 'ERR_UPSTREAM_SPAWN');
});
