/** Hands messages of one pipe or stream to the calls they are for, by number. */
import { readNumber, WrongAnswer } from './call.ts';
import type { ControlAnswer } from './client.ts';

export interface Recipient {
  /** Throws if the message is wrong. */
  accept(message: Buffer): void;
  fail(error: Error): void;
}

export class Mailbox {
  readonly #recipients = new Map<number, Recipient>();

  expect(number: number, recipient: Recipient): void {
    this.#recipients.set(number, recipient);
  }

  settle(number: number): void {
    this.#recipients.delete(number);
  }

  deliver(message: Buffer): void {
    try {
      const number = readNumber(message);
      // A notification that belongs to no call.
      if (number === undefined) return;
      const recipient = this.#recipients.get(number);
      if (recipient === undefined) throw new WrongAnswer(`a message for ${number}, which is not open`);
      recipient.accept(message);
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  fail(error: Error): void {
    const failed = [...this.#recipients.values()];
    this.#recipients.clear();
    for (const recipient of failed) recipient.fail(error);
  }

  /** Resolves with the answer to a request that is not measured. */
  answerTo(number: number): Promise<ControlAnswer> {
    return new Promise((resolve, reject) => {
      this.expect(number, {
        accept: (message) => {
          const answer = JSON.parse(message.toString());
          if (answer.method !== undefined) return;
          this.settle(number);
          resolve(answer);
        },
        fail: reject,
      });
    });
  }
}
