import { createHash } from 'node:crypto';
import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { canonicalCapabilities } from '../../mcp/translate/capabilities.ts';
import { DISCOVER } from '../../mcp/vocabulary/methods.ts';
import { readPayload } from '../../mcp/vocabulary/payload.ts';
import { declaresTasks } from '../../mcp/vocabulary/task-extension.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Aggregate } from '../aggregate.ts';
import type { ListKind } from '../lists.ts';
import type { ListSource, MemberLists } from '../member-lists.ts';
import type { Member } from '../members.ts';
import { MemberCall, type ModernCaller } from './member-call.ts';

/** Callers whose lists are remembered, and the bytes of all their lists. The ones that were away longest are forgotten. */
const MAX_VIEWERS = 64;
const MAX_BYTES = 256 * 1024 * 1024;

/** The servers' lists as one caller sees them. Its requests are independent, so each of them can bring these up to date. */
export class Viewer implements ListSource {
  readonly lists: MemberLists;
  /** The servers that have had a request of this caller. */
  readonly used = new Set<Member>();
  readonly declaresTasks: boolean;
  readonly #aggregate: Aggregate;
  /** Subscriptions of the caller, each of which ends its own entry. */
  readonly #lateListeners = new Set<(kind: ListKind) => void>();
  #caller: ModernCaller;
  #metadata: RequestMetadata;
  #lastId = 0;

  constructor(aggregate: Aggregate, caller: ModernCaller, metadata: RequestMetadata) {
    this.#aggregate = aggregate;
    this.#caller = { ...caller, traceHeaders: undefined };
    this.#metadata = metadata;
    this.declaresTasks = declaresTasks(metadata.capabilities);
    this.lists = aggregate.listsFor(this, (kind) => {
      for (const late of this.#lateListeners) late(kind);
    });
  }

  /** Calls back when a list is there that was left out of an answer. Returns a function that stops this. */
  onLate(late: (kind: ListKind) => void): () => void {
    this.#lateListeners.add(late);
    return () => this.#lateListeners.delete(late);
  }

  /** Forgets the servers that are not there anymore. */
  keepOnly(members: readonly Member[]): void {
    this.lists.keepOnly(members);
    for (const member of this.used) if (!members.includes(member)) this.used.delete(member);
  }

  returned(caller: ModernCaller, metadata: RequestMetadata): void {
    this.#caller = { ...caller, traceHeaders: undefined };
    this.#metadata = metadata;
  }

  ask(member: Member, kind: ListKind, cursor: string | undefined): Promise<Frame> {
    this.#lastId += 1;
    const request = requestFrame(`list-${this.#lastId}`, kind.method, cursor === undefined ? {} : { cursor });
    this.used.add(member);
    if (!this.#aggregate.known.has(member)) void this.#introduce(member);
    return this.#ask(member, request);
  }

  /** Learns what a server says of itself, for what the aggregate says to later clients. */
  async #introduce(member: Member): Promise<void> {
    const answer = await this.#ask(member, requestFrame('discover', DISCOVER));
    const result = answer.kind === 'result' ? readPayload(answer) : undefined;
    if (result !== undefined) this.#aggregate.known.noteInstructions(member, result.instructions);
  }

  #ask(member: Member, request: Frame): Promise<Frame> {
    return new Promise((resolve) => {
      const call = new MemberCall({
        member,
        caller: this.#caller,
        metadata: this.#metadata,
        told: (frame) => {
          if (!frame.isResponse) return;
          if (frame.kind === 'result') this.#aggregate.answered(member);
          resolve(frame);
        },
        drained: () => {},
      });
      call.start(stampMetadata(request, this.#metadata));
    });
  }

  expiryOf(_member: Member, _kind: ListKind, ttlMs = 0): number {
    return ttlMs > 0 ? this.#aggregate.deps.clock.now() + ttlMs : Number.NEGATIVE_INFINITY;
  }
}

/** Clients that are likely to call in the same moment at most. */
const MAX_RECENT = 8;

/** A client that said the same of itself before, with the same bytes. */
interface Recent {
  readonly metadata: RequestMetadata;
  readonly principal: string;
  readonly environment: ModernCaller['environment'];
  readonly viewer: Viewer;
}

/** Remembers what callers have seen. */
export class Viewers {
  readonly #aggregate: Aggregate;
  readonly #stopHearing: () => void;
  #recent: Recent[] = [];
  /** In order of use, the latest one last. */
  readonly #byKey = new Map<string, Viewer>();

  constructor(aggregate: Aggregate) {
    this.#aggregate = aggregate;
    this.#stopHearing = aggregate.members.onChange(() => {
      this.#recent = [];
      for (const viewer of this.#byKey.values()) viewer.keepOnly(aggregate.members.all);
    });
  }

  close(): void {
    this.#stopHearing();
  }

  /** Returns what requests with this name, capabilities, headers and variables of this caller see. */
  of(caller: ModernCaller, metadata: RequestMetadata): Viewer {
    // Large metadata is not kept, because it refers to the bytes of the whole request.
    if (metadata.capabilitiesBytes !== undefined) return new Viewer(this.#aggregate, caller, metadata);
    for (const recent of this.#recent) if (isSame(recent, caller, metadata)) return recent.viewer;
    const viewer = this.#find(caller, metadata);
    const { principal, environment, headers } = caller;
    if (headers === undefined) {
      this.#recent = [{ metadata, principal, environment, viewer }, ...this.#recent.slice(0, MAX_RECENT - 1)];
    }
    return viewer;
  }

  #find(caller: ModernCaller, metadata: RequestMetadata): Viewer {
    const { principal, environment, headers } = caller;
    const { key } = canonicalCapabilities(metadata.capabilities);
    const { revision, clientInfo } = metadata;
    // A server may show each client something else, and knows it by its name.
    const hasTasks = declaresTasks(metadata.capabilities);
    const parts = JSON.stringify([principal, environment, headers, revision, key, hasTasks, clientInfo]);
    const name = createHash('sha256').update(parts).digest('base64url');
    const known = this.#byKey.get(name);
    const viewer = known ?? new Viewer(this.#aggregate, caller, metadata);
    known?.returned(caller, metadata);
    this.#byKey.delete(name);
    this.#byKey.set(name, viewer);
    if (known === undefined) this.#forgetOldest();
    return viewer;
  }

  #forgetOldest(): void {
    let bytes = [...this.#byKey.values()].reduce((sum, { lists }) => sum + lists.bytes, 0);
    for (const [key, viewer] of this.#byKey) {
      if (this.#byKey.size <= 1 || (this.#byKey.size <= MAX_VIEWERS && bytes <= MAX_BYTES)) return;
      bytes -= viewer.lists.bytes;
      this.#byKey.delete(key);
    }
  }
}

function isSame(recent: Recent, { principal, environment, headers }: ModernCaller, metadata: RequestMetadata): boolean {
  return (
    recent.metadata === metadata &&
    recent.principal === principal &&
    recent.environment === environment &&
    headers === undefined
  );
}
