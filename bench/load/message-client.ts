/** A client whose messages all leave by one way and arrive by another: pipes, a connection, a stream, topics. */
import { Call, encodeRequest } from './call.ts';
import { type Client, type ControlAnswer, type Identity, INITIALIZE, INITIALIZED, type Lane } from './client.ts';
import type { Mailbox } from './mailbox.ts';
import type { Numbers } from './numbers.ts';
import type { Era, Workload } from './workload.ts';

/** The way of one client. */
export interface Way {
  /** What stands before so many bytes of a message, in characters of one byte. */
  readonly head: (bodyBytes: number) => string;
  readonly tail: string;
  /** Sends a message with its head and tail. The bytes are changed by the next call. */
  write(bytes: Buffer): void;
  close(): void | Promise<void>;
}

/** Opens the session of a client on its way, by which messages reach the mailbox. */
export async function openMessageClient(way: Way, mailbox: Mailbox, identity: Identity): Promise<Client> {
  const client = new MessageClient(way, mailbox, identity);
  if (identity.era === 'legacy') await client.initialize();
  return client;
}

class MessageClient implements Client {
  readonly name: string;
  readonly numbers: Numbers;
  readonly #way: Way;
  readonly #era: Era;
  readonly #mailbox: Mailbox;
  #requests = 1;

  constructor(way: Way, mailbox: Mailbox, { name, era, numbers }: Identity) {
    this.name = name;
    this.numbers = numbers;
    this.#way = way;
    this.#era = era;
    this.#mailbox = mailbox;
  }

  async initialize(): Promise<void> {
    const answered = this.#mailbox.answerTo(1);
    this.#send(INITIALIZE);
    const { result } = await answered;
    if (result === undefined) throw new Error('initialize was refused');
    this.#send(INITIALIZED);
  }

  request(method: string): Promise<ControlAnswer> {
    this.#requests += 1;
    const id = this.#requests;
    const answered = this.#mailbox.answerTo(id);
    this.#send(encodeRequest(id, method, this.#era));
    return answered;
  }

  async openLane(workload: Workload): Promise<Lane> {
    const { head, tail } = this.#way;
    const call = new Call({ workload, client: this.name, era: this.#era, answersIn: this.#era, head, tail });
    return new WritingLane((bytes) => this.#way.write(bytes), call, this.#mailbox);
  }

  async close(): Promise<void> {
    await this.#way.close();
  }

  #send(body: string): void {
    const { head, tail } = this.#way;
    this.#way.write(Buffer.from(head(body.length) + body + tail, 'latin1'));
  }
}

/** A call in flight where all calls of a client leave by the same way. */
class WritingLane implements Lane {
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
    // The way is the client's.
  }
}
