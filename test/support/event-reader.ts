import type { IncomingMessage } from 'node:http';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** A server-sent event; `data` parsed where it is JSON. */
export interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** Only what fails takes it, and then says so before AVA ends the whole run. */
const TIMEOUT_MS = 60_000;

/** Reads a response as an event stream; keeps what comes until it is asked for. */
export class EventReader {
  readonly comments: string[] = [];
  readonly retries: number[] = [];
  /** Events nobody has asked for yet. */
  readonly unread: ReceivedEvent[] = [];
  /** Resolves when the stream has ended or was cut. */
  readonly closed: Promise<'ended' | 'cut'>;
  readonly #response: IncomingMessage;
  #isClosed = false;
  #wake: (() => void)[] = [];

  constructor(response: IncomingMessage) {
    this.#response = response;
    const parser = createParser({
      onEvent: (event) => this.#take(event),
      onComment: (comment) => this.comments.push(comment.trim()),
      onRetry: (retry) => this.retries.push(retry),
    });
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => parser.feed(chunk));
    response.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      response.once('close', () => {
        this.#isClosed = true;
        this.#wakeAll();
        resolve(response.complete ? 'ended' : 'cut');
      });
    });
  }

  #take({ id, event, data }: EventSourceMessage): void {
    this.unread.push({ id, event, data });
    this.#wakeAll();
  }

  #wakeAll(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const run of wake) run();
  }

  /** The next event; rejects when the stream closes without one, and when none comes in time. */
  async next(): Promise<ReceivedEvent> {
    let isOverdue = false;
    const limit = setTimeout(() => {
      isOverdue = true;
      this.#wakeAll();
    }, TIMEOUT_MS);
    try {
      for (;;) {
        const event = this.unread.shift();
        if (event !== undefined) return event;
        if (this.#isClosed) throw new Error('the stream closed without another event');
        if (isOverdue) throw new Error(`no other event came within ${TIMEOUT_MS} ms`);
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
    } finally {
      clearTimeout(limit);
    }
  }

  /** The next event's JSON-RPC message. */
  async message<Message = Record<string, unknown>>(): Promise<Message> {
    return JSON.parse((await this.next()).data) as Message;
  }

  /** All events up to the end of the stream. */
  async rest(): Promise<readonly ReceivedEvent[]> {
    await this.closed;
    return this.unread.splice(0);
  }

  /** Stops reading: what the server sends piles up on its side. */
  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  /** Cuts the connection. */
  leave(): void {
    this.#response.destroy();
  }
}
