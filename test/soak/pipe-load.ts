import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Bridge, startBridge } from '../support/bridge.ts';
import type { LoadReport } from './load.ts';
import { type PipeOptions, SoakPipe } from './pipe-client.ts';
import { judgeFlat, type Sample, sumOf, takeSample } from './samples.ts';
import { Tally } from './tally.ts';

const COMMAND = ['--', process.execPath, fileURLToPath(new URL('../fixtures/servers/echo.js', import.meta.url))];
const SAMPLE_MS = 1000;

/** Stdio endpoints, each with a client: before processes of their own, and before another bridge over both transports. */
export class PipeLoad {
  readonly #bridge: Bridge;
  readonly #pipes: readonly SoakPipe[];
  readonly #tally: Tally;
  readonly #samples: Sample[] = [];

  private constructor(bridge: Bridge, pipes: readonly SoakPipe[], tally: Tally) {
    this.#bridge = bridge;
    this.#pipes = pipes;
    this.#tally = tally;
  }

  /** @param count of each kind: legacy and modern clients, before each of three servers */
  static async start(count: number): Promise<PipeLoad> {
    const bridge = await startBridge(['--isolation', 'shared', ...COMMAND]);
    const targets = [COMMAND, [bridge.url.href], [bridge.sseUrl.href]];
    const kinds = targets.flatMap((target): PipeOptions[] => [
      { era: 'legacy', target },
      { era: 'modern', target },
    ]);
    const tally = new Tally();
    const pipes: SoakPipe[] = [];
    for (const kind of kinds) for (let n = 0; n < count; n += 1) pipes.push(await SoakPipe.open(kind, tally));
    return new PipeLoad(bridge, pipes, tally);
  }

  async run(endMs: number): Promise<LoadReport> {
    const isOver = (): boolean => Date.now() >= endMs;
    await Promise.all([...this.#pipes.map((pipe) => this.#callOn(pipe, isOver)), this.#sample(isOver)]);
    const failures: string[] = [];
    for (const pipe of this.#pipes)
      await pipe.close().catch((error: unknown) => failures.push(`stdio endpoints: ${error}`));
    await this.#bridge.stop().catch((error: unknown) => failures.push(`stdio endpoints: ${error}`));
    const { isFlat, report } = judgeFlat(this.#samples);
    if (!isFlat) failures.push(`stdio endpoints: not flat: ${report}`);
    const { lost, crossed, examples } = this.#tally;
    if (lost + crossed > 0) failures.push(`stdio endpoints: ${this.#tally}\n  ${examples.join('\n  ')}`);
    const title = `${this.#pipes.length} stdio endpoints`;
    return { lines: [`${title}: ${this.#tally}`, `${title}, all together: ${report}`], failures };
  }

  async #callOn(pipe: SoakPipe, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await pipe.call();
      await delay(5);
    }
  }

  async #sample(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      this.#samples.push(sumOf(this.#pipes.map(({ pid }) => takeSample(pid))));
      await delay(SAMPLE_MS);
    }
  }
}
