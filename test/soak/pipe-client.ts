import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { modern } from '../downstream/streamable-stateless/modern-posts.ts';
import { BRIDGE_COMMAND, REPOSITORY } from '../support/bridge.ts';
import { initialize, notification } from '../support/legacy-clients.ts';
import { assertGone, descendantsOf } from '../support/processes.ts';
import { AnswerDesk } from './answer-desk.ts';
import { checkAnswer, echo, type Resident, uniqueText } from './client.ts';
import type { Tally } from './tally.ts';

export interface PipeOptions {
  readonly era: 'legacy' | 'modern';
  /** Words for `mcp-portage connect`. */
  readonly target: readonly string[];
}

/** A client on the pipe of a stdio endpoint of its own. */
export class SoakPipe implements Resident {
  readonly #options: PipeOptions;
  readonly #tally: Tally;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #desk: AnswerDesk;
  #id = 0;

  private constructor(options: PipeOptions, tally: Tally) {
    this.#options = options;
    this.#tally = tally;
    this.#desk = new AnswerDesk(tally);
    const [node, ...words] = [...BRIDGE_COMMAND, 'connect', '--log-level', 'error', ...options.target];
    this.#child = spawn(node ?? '', words, { cwd: REPOSITORY, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => undefined);
    this.#child.on('close', () => this.#desk.close());
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#desk.take(JSON.parse(line), line));
  }

  static async open(options: PipeOptions, tally: Tally): Promise<SoakPipe> {
    const pipe = new SoakPipe(options, tally);
    if (options.era === 'legacy') {
      await pipe.#ask(0, initialize());
      pipe.#write(notification('notifications/initialized'));
    }
    tally.sessions += 1;
    return pipe;
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  #write(message: object): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #ask(id: number, message: object): Promise<string> {
    const answer = this.#desk.answerTo(id);
    this.#write(message);
    return answer;
  }

  async call(): Promise<void> {
    const text = uniqueText('pipe');
    const id = ++this.#id;
    const params = { name: 'echo', arguments: { text } };
    const message = this.#options.era === 'legacy' ? echo(id, text) : modern(id, 'tools/call', params);
    await checkAnswer({ tally: this.#tally, id, text }, async () => ({
      status: 200,
      text: await this.#ask(id, message),
    }));
  }

  /** Fails unless it ends by itself, with 0, and leaves nothing behind. */
  async close(): Promise<void> {
    const processes = [this.pid, ...descendantsOf(this.pid)];
    const exited = once(this.#child, 'close');
    this.#child.stdin.end();
    const [code, signal] = await exited;
    if (code !== 0) this.#tally.fail('lost', `a stdio endpoint ended with ${code ?? signal}`);
    await assertGone(processes);
  }
}
