import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Protection } from './protection.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LEFT_BEHIND = new Set(['.git', 'node_modules', 'dist', 'bench']);
/** A test that hangs without its protection has noticed, too, but need not take AVA's two minutes to say so. */
const HANG = '30s';
const AVA = join(ROOT, 'node_modules/ava/entrypoints/cli.mjs');

export interface TestRun {
  readonly failed: number;
  readonly passed: number;
  readonly output: string;
}

/** A copy of the project in which code can be taken out. */
export class Workspace {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(): Promise<Workspace> {
    const folder = await mkdtemp(join(tmpdir(), 'protections-'));
    const filter = (path: string): boolean => !LEFT_BEHIND.has(relative(ROOT, path).split(sep)[0] ?? '');
    await cp(ROOT, folder, { recursive: true, filter });
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    return new Workspace(folder);
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Rejects when the code is not there exactly once: then the list is out of date. */
  async without({ file, code, without = '' }: Protection, run: () => Promise<void>): Promise<void> {
    const path = join(this.#folder, file);
    const whole = await readFile(path, 'utf8');
    const found = whole.split(code).length - 1;
    if (found !== 1) throw new Error(`${file} holds this ${found} times instead of once: ${code}`);
    try {
      // A function: in a plain text, $& and the like would stand for something.
      await writeFile(
        path,
        whole.replace(code, () => without),
      );
      await run();
    } finally {
      await writeFile(path, whole);
    }
  }

  async build(): Promise<void> {
    const { code, output } = await this.#run(['scripts/build.js']);
    if (code !== 0) throw new Error(`the build failed:\n${output}`);
  }

  async test(files: readonly string[]): Promise<TestRun> {
    const { output } = await this.#run([AVA, '--timeout', HANG, ...files]);
    return { failed: count(output, /^ +✘ /gm), passed: count(output, /^ +✔ /gm), output };
  }

  async #run(args: readonly string[]): Promise<{ code: number | null; output: string }> {
    const child = spawn(process.execPath, args, { cwd: this.#folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        output += text;
      });
    }
    await once(child, 'close');
    return { code: child.exitCode, output };
  }
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
