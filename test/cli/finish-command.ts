import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command that ends by itself when its input has ended. */
export async function finishCommand([command = '', ...args]: readonly string[], input = ''): Promise<Finished> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  // A command may end before it has read its input, or all of it. Its code and its output say why.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code, stdout, stderr };
}
