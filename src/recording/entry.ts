import type { RecentNames } from '../collections/bounded-collections.ts';
import type { Frame } from '../wire/frame.ts';
import { type MessageOrigin, originText, type RecordedDirection } from './recorded-message.ts';

/** What a recording says of all messages of one tap. */
export class Origin {
  readonly facts: MessageOrigin;
  /** The same as text, for each direction. */
  readonly in: string;
  readonly out: string;

  constructor(facts: MessageOrigin) {
    this.facts = facts;
    this.in = originText(facts, 'in');
    this.out = originText(facts, 'out');
  }

  with(change: Partial<MessageOrigin>): Origin {
    return new Origin({ ...this.facts, ...change });
  }
}

/** The tap of an entry, which the messages of other taps can join with a call. */
export interface JoiningTap {
  /** Called when a message that this tap has recorded turns out to belong to this call. */
  joined(entry: Entry): void;
}

/** A message that is recorded. */
export interface Entry {
  readonly atMs: number;
  readonly frame: Frame;
  readonly origin: Origin;
  readonly tap: JoiningTap;
  readonly direction: RecordedDirection;
  /** Number of the client's call. 0 while no call is known that the message belongs to. */
  call: number;
}

/** Collects the messages of all taps. */
export interface Journal {
  /** The message that is being handled. */
  readonly current: Entry | undefined;
  /** Calls that wait for answers of their modern clients, by the `requestState` that the clients were given. */
  readonly rounds: RecentNames<number>;
  nextCall(): number;
  /** Records a message. */
  add(message: Omit<Entry, 'atMs'>): Entry;
  /** Calls `handle`. What is sent meanwhile is caused by the message of this entry. */
  handle(entry: Entry, handle: () => void): void;
}
