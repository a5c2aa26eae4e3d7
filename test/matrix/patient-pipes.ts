/**
 * The SDKs kill a process that has not ended one or two seconds after it was asked to. On a busy machine that is too soon
 * for a bridge that has to end its session at the server, and once it is dead nobody can. Here they ask, wait for longer,
 * and only then go on.
 */
import type { ChildProcess } from 'node:child_process';
import { waitFor } from '../support/wait-for.ts';

/** Only what does not end takes it. */
const PATIENCE_MS = 20_000;

interface Pipe {
  close(): Promise<void>;
}

type PipeClass<P extends Pipe> = new (parameters: never) => P;

/** The same class, changed for the whole process: the SDK v2 makes transports of it by itself, too. */
export function makePatient<P extends Pipe>(Transport: PipeClass<P>): void {
  const { prototype } = Transport;
  for (const [name, signal] of [['close'], ['_dispose', 'SIGTERM']] as const) {
    const end: unknown = Reflect.get(prototype, name);
    // Only the SDK v2 has the second one.
    if (typeof end !== 'function') continue;
    Reflect.set(prototype, name, async function (this: object): Promise<void> {
      await ask(Reflect.get(this, '_process'), signal);
      await end.call(this);
    });
  }
}

/** As the SDK itself does, which does it again. */
async function ask(child: ChildProcess | undefined, signal: NodeJS.Signals | undefined): Promise<void> {
  if (child === undefined) return;
  child.stdin?.end();
  if (signal !== undefined) child.kill(signal);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await waitFor(hasEnded, { timeoutMs: PATIENCE_MS }).catch(() => undefined);
}
