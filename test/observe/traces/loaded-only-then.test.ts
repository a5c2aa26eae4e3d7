/** The libraries for traces are read by nobody who does not trace: here they are not even there. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import test from 'ava';
import { INITIALIZE, stub } from '../../cli/stdio-program.ts';
import { REPOSITORY } from '../../support/bridge.ts';

function run(
  bin: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env } };
    const args = [bin, 'connect', ...stub('echo')];
    const program = execFile(process.execPath, args, options, (error, stdout) =>
      resolve({ code: Number(error?.code ?? 0), stdout }),
    );
    program.stdin?.end(`${JSON.stringify(INITIALIZE)}\n`);
  });
}

test('a start without traces needs no file of their libraries, and one with them does', async (t) => {
  const copy = await mkdtemp(join(tmpdir(), 'portage-copy-'));
  t.teardown(() => rm(copy, { recursive: true, force: true }));
  const filter = (path: string): boolean => basename(path) !== 'traces.cjs';
  for (const part of ['bin', 'dist', 'package.json']) {
    await cp(join(REPOSITORY, part), join(copy, part), { recursive: true, filter });
  }
  const bin = join(copy, 'bin', 'mcp-portage.js');
  const plain = await run(bin, {});
  t.is(plain.code, 0);
  t.regex(plain.stdout, /"protocolVersion"/);
  const traced = await run(bin, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  t.not(traced.code, 0);
});
