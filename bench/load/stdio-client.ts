/** A client on the pipes of a process it was given. */
import type { Readable, Writable } from 'node:stream';
import { createLineSplitter } from '../server/lines.js';
import { Call, encodeRequest } from './call.ts';
import { type Client, type ControlAnswer, type Identity, INITIALIZE, INITIALIZED, type Lane } from './client.ts';
import { Mailbox } from './mailbox.ts';
import type { Numbers } from './numbers.ts';
import type { Era, Workload } from './workload.ts';

export interface Pipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
}

export async function openStdioClient(pipes: Pipes, identity: Identity): Promise<Client> {
  const client = new StdioClient(pipes, identity);
  if (identity.era === 'legacy') await client.initialize();
  return client;
}

class StdioClient implements Client {
  readonly name: string;
  readonly numbers: Numbers;
  readonly #pipes: Pipes;
  readonly #era: Era;
  readonly #mailbox = new Mailbox();
  #requests = 1;

  constructor(pipes: Pipes, { name, era, numbers }: Identity) {
    this.name = name;
    this.numbers = numbers;
    this.#pipes = pipes;
    this.#era = era;
    const split = createLineSplitter((line: Buffer) => {
      if (line.length > 0) this.#mailbox.deliver(line);
    });
    pipes.stdout.on('data', split);
    pipes.stdout.on('end', () => this.#mailbox.fail(new Error('the bridge closed its output')));
    pipes.stdin.on('error', (error) => this.#mailbox.fail(error));
  }

  async initialize(): Promise<void> {
    const answered = this.#mailbox.answerTo(1);
    this.#pipes.stdin.write(`${INITIALIZE}\n`);
    const { result } = await answered;
    if (result === undefined) throw new Error('initialize was refused');
    this.#pipes.stdin.write(`${INITIALIZED}\n`);
  }

  request(method: string): Promise<ControlAnswer> {
    this.#requests += 1;
    const id = this.#requests;
    const answered = this.#mailbox.answerTo(id);
    this.#pipes.stdin.write(`${encodeRequest(id, method, this.#era)}\n`);
    return answered;
  }

  async openLane(workload: Workload): Promise<Lane> {
    const call = new Call({
      workload,
      client: this.name,
      era: this.#era,
      answersIn: this.#era,
      head: () => '',
      tail: '\n',
    });
    return new WritingLane((bytes) => this.#pipes.stdin.write(bytes), call, this.#mailbox);
  }

  async close(): Promise<void> {
    this.#pipes.stdin.end();
  }
}

/** A call in flight where all calls of a client leave by the same way. */
export class WritingLane implements Lane {
  readonly call: Call;
  readonly #write: (bytes: Buffer) => void;
  readonly #mailbox: Mailbox;

  constructor(write: (bytes: Buffer) => void, call: Call, mailbox: Mailbox) {
    this.#write = write;
    this.call = call;
    this.#mailbox = mailbox;
  }

  run(onDone: () => void, onFailure: (error: Error) => void): void {
    this.#mailbox.expect(this.call.number, {
      accept: (message) => {
        if (!this.call.accept(message)) return;
        this.#mailbox.settle(this.call.number);
        onDone();
      },
      fail: onFailure,
    });
    this.#write(this.call.bytes);
  }

  close(): void {
    // The pipes are the client's.
  }
}
