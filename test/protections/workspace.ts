import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findStaleness, type Protection } from './protection.ts';

const listProcesses = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LEFT_BEHIND = new Set(['.git', 'node_modules', 'build', 'dist', 'bench']);
/** A test that hangs without its protection has noticed, too, but need not take AVA's two minutes to say so. */
const HANG = '20s';
/** A test that fails, hangs, or takes its process down. */
const FAILURE = /^ +✘ (?:\[fail\]: )?((?<=: ).+|Timed out.*|.+ exited with .+)$/gm;

export interface TestRun {
  /** What AVA calls them; a run that hung or crashed is one of them. */
  readonly failed: readonly string[];
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
    await this.#endLeftovers();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Rejects when the code is not there exactly once: then the list is out of date. */
  async without(protection: Protection, run: () => Promise<void>): Promise<void> {
    const { file, code, without = '' } = protection;
    const path = join(this.#folder, file);
    const whole = await readFile(path, 'utf8').catch(() => '');
    const staleness = findStaleness(protection, whole);
    if (staleness !== undefined) throw new Error(staleness);
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

  /** Ends with the first test that fails: one is enough. */
  async test({ tests, title }: Pick<Protection, 'tests' | 'title'>): Promise<TestRun> {
    const match = title === undefined ? [] : ['--match', title];
    const { output } = await this.#run(['scripts/test.js', '--fail-fast', '--timeout', HANG, ...match, ...tests]);
    const failed = [...output.matchAll(FAILURE)].map(([, what = '']) => what);
    return { failed, passed: [...output.matchAll(/^ +✔ /gm)].length, output };
  }

  /** Processes of fixtures that nothing has ended: what does was taken out. They are known by the folder, which is ours alone. */
  async #endLeftovers(): Promise<void> {
    if (process.platform === 'win32') return;
    const { stdout } = await listProcesses('ps', ['-eo', 'pid=,args=']);
    for (const line of stdout.split('\n').filter((one) => one.includes(`${this.#folder}${sep}`))) {
      try {
        process.kill(Number.parseInt(line, 10), 'SIGKILL');
      } catch {
        // It has just ended by itself.
      }
    }
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
