import type { Clock } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { asFields, readField, readFields, showText } from '../mcp/vocabulary/payload.ts';
import { METHOD_NOT_FOUND } from '../mcp/vocabulary/rpc-codes.ts';
import { failureToldBy } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';
import { type ListItem, type ListKind, readListPage } from './lists.ts';
import type { Member } from './members.ts';
import { shownName, shownTaskId } from './names.ts';

/** Pages that are read of one list. Servers with fifty tools to a page can have 10,000 of them. */
const MAX_PAGES = 200;
/** Bytes of the items of one list. Later items are left out. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const MAX_LIST_ITEMS = 20_000;
/** A client waits so long for the list of a server. A list that comes later is announced as a change. */
export const LIST_WAIT_MS = 10_000;

/** Asks servers for their lists. */
export interface ListSource {
  /** Rejects with a BridgeError if the server cannot be asked. */
  ask(member: Member, kind: ListKind, cursor: string | undefined): Promise<Frame>;
  /** Returns the time until which this list is remembered, now that it was read. Infinity: until the server says that it changed. */
  expiryOf(member: Member, kind: ListKind, ttlMs: number | undefined): number;
}

export interface MemberListsOptions {
  readonly source: ListSource;
  readonly clock: Clock;
  /** Called when a server's list is there that was left out of an answer. */
  readonly arrivedLate: (kind: ListKind) => void;
  /** Called with the reason why the list of a server is left out. */
  readonly leftOut: (member: Member, reason: BridgeError) => void;
  /** Called when a list has more items than are read. */
  readonly truncated: (member: Member, kind: ListKind) => void;
}

/** A list of one server. */
interface KnownList {
  readonly items: readonly ListItem[];
  readonly expiresAtMs: number;
  /** The items by the names that clients see, without those that an earlier item has already; made when it is needed. */
  byName: ReadonlyMap<string, ListItem> | undefined;
}

/** The knowledge of a list. A list that has expired still tells which server has an item. */
interface ListRecord {
  known: KnownList | undefined;
  /** Set while the server is being asked. Never rejects: undefined means that there is no answer. */
  asking: Promise<KnownList | undefined> | undefined;
  /** True if the list was left out of an answer since it was last there. */
  isAwaited: boolean;
  /** Grows with each change, so that an answer from before a change is not taken for the list after it. */
  version: number;
}

/** The lists of all servers, as one client sees them. Each is asked for when it is wanted, and then remembered. */
export class MemberLists {
  readonly #options: MemberListsOptions;
  readonly #records = new Map<Member, Map<ListKind, ListRecord>>();

  constructor(options: MemberListsOptions) {
    this.#options = options;
  }

  /** Returns the items as they were last seen. Undefined if this list was never read. */
  itemsOf(member: Member, kind: ListKind): readonly ListItem[] | undefined {
    return this.#records.get(member)?.get(kind)?.known?.items;
  }

  /** Returns the item that clients know by this name, or by this URI. */
  find(member: Member, kind: ListKind, shown: string): ListItem | undefined {
    const known = this.#records.get(member)?.get(kind)?.known;
    if (known === undefined) return undefined;
    known.byName ??= new Map(known.items.toReversed().map((item) => [shownKey(member, kind, item), item]));
    return known.byName.get(shown);
  }

  /** Returns true if the list is known, and the server has not said that it has changed. */
  isFresh(member: Member, kind: ListKind): boolean {
    const known = this.#records.get(member)?.get(kind)?.known;
    return known !== undefined && known.expiresAtMs > this.#options.clock.now();
  }

  /** Reads the lists that are not remembered. Resolves when all are there, or after a time. */
  async load(members: readonly Member[], kinds: readonly ListKind[]): Promise<void> {
    const wanted = members.flatMap((member) =>
      kinds.filter((kind) => !this.isFresh(member, kind)).map((kind) => ({ member, kind })),
    );
    if (wanted.length === 0) return;
    let isOver = false;
    const asked = wanted.map(async ({ member, kind }) => {
      const record = this.#recordOf(member, kind);
      const known = await this.#ask(member, kind, record);
      if (!isOver || known === undefined || !record.isAwaited) return;
      record.isAwaited = false;
      this.#options.arrivedLate(kind);
    });
    await this.#inTime(Promise.all(asked));
    isOver = true;
    for (const { member, kind } of wanted) {
      const record = this.#recordOf(member, kind);
      if (record.asking === undefined) continue;
      record.isAwaited = true;
      this.#options.leftOut(member, tooSlow(member, kind));
    }
  }

  /** Resolves when all lists are there, or when the time is over. */
  #inTime(all: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(LIST_WAIT_MS, resolve);
      void all.then(() => {
        cancel();
        resolve();
      });
    });
  }

  #recordOf(member: Member, kind: ListKind): ListRecord {
    let ofMember = this.#records.get(member);
    if (ofMember === undefined) {
      ofMember = new Map();
      this.#records.set(member, ofMember);
    }
    let record = ofMember.get(kind);
    if (record === undefined) {
      record = { known: undefined, asking: undefined, isAwaited: false, version: 0 };
      ofMember.set(kind, record);
    }
    return record;
  }

  #ask(member: Member, kind: ListKind, record: ListRecord): Promise<KnownList | undefined> {
    record.asking ??= this.#read(member, kind, record).finally(() => {
      record.asking = undefined;
    });
    return record.asking;
  }

  async #read(member: Member, kind: ListKind, record: ListRecord): Promise<KnownList | undefined> {
    const { version } = record;
    try {
      const list = await this.#readPages(member, kind);
      // A list that changed while it was read is shown, and asked for again the next time.
      const isChanged = record.version !== version;
      record.known = isChanged ? { ...list, expiresAtMs: Number.NEGATIVE_INFINITY } : list;
      return record.known;
    } catch (thrown) {
      record.isAwaited = true;
      this.#options.leftOut(member, toBridgeError(thrown));
      return undefined;
    }
  }

  async #readPages(member: Member, kind: ListKind): Promise<KnownList> {
    const { source, truncated } = this.#options;
    const items: ListItem[] = [];
    let bytes = 0;
    let expiresAtMs = Number.POSITIVE_INFINITY;
    let cursor: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const answer = await source.ask(member, kind, cursor);
      const page = readListPage(answer, kind);
      if (page === undefined && isUnknownMethod(answer)) return { items: [], expiresAtMs, byName: undefined };
      if (page === undefined) throw unreadable(member, kind, answer);
      expiresAtMs = Math.min(expiresAtMs, source.expiryOf(member, kind, page.ttlMs));
      for (const item of page.items) {
        bytes += item.bytes.length;
        if (bytes > MAX_LIST_BYTES || items.length >= MAX_LIST_ITEMS) {
          truncated(member, kind);
          return { items, expiresAtMs, byName: undefined };
        }
        items.push(item);
      }
      if (page.nextCursor === undefined) return { items, expiresAtMs, byName: undefined };
      cursor = page.nextCursor;
    }
    truncated(member, kind);
    return { items, expiresAtMs, byName: undefined };
  }

  /** The server has said that the list has changed, or its session has ended. */
  changed(member: Member, kind: ListKind): void {
    const record = this.#recordOf(member, kind);
    record.version += 1;
    if (record.known !== undefined) record.known = { ...record.known, expiresAtMs: Number.NEGATIVE_INFINITY };
  }

  /** The bytes of all items. */
  get bytes(): number {
    let sum = 0;
    for (const ofMember of this.#records.values()) {
      for (const { known } of ofMember.values()) for (const { bytes } of known?.items ?? []) sum += bytes.length;
    }
    return sum;
  }

  /** Forgets the servers that are not there anymore. */
  keepOnly(members: readonly Member[]): void {
    for (const member of this.#records.keys()) if (!members.includes(member)) this.#records.delete(member);
  }
}

/** Returns the name by which clients know an item, unless an earlier server has a resource of the same URI. */
export function shownKey(member: Member, { key }: ListKind, item: ListItem): string {
  if (key === 'taskId') return shownTaskId(member, item.key);
  return key === 'name' ? shownName(member, item.key) : item.key;
}

function isUnknownMethod(answer: Frame): boolean {
  return answer.kind === 'error' && readField(answer, 'code') === METHOD_NOT_FOUND;
}

function tooSlow({ name }: Member, { method }: ListKind): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server ${name} has not answered ${method} within ${LIST_WAIT_MS / 1000} s; what it has is shown when it answers.`,
  );
}

function unreadable({ name }: Member, { method }: ListKind, answer: Frame): BridgeError {
  if (answer.kind !== 'error') {
    return new BridgeError(
      'ERR_UPSTREAM_PROTOCOL',
      `The server ${name} answered ${method} with something that is no list.`,
    );
  }
  const told = failureToldBy(answer);
  if (told !== undefined) return told;
  const { message } = asFields(readFields(answer, ['message'])) ?? {};
  const said = JSON.stringify(showText(message).slice(0, 200));
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `The server ${name} refused ${method}: ${said}`);
}
