import { LinkedList } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import type { Call } from '../../relay/call.ts';
import { answersId, type JsonRpcId } from '../../wire/frame.ts';
import type { Outgoing } from './link-messages.ts';
import type { PostedCall } from './posted-call.ts';

/**
 * Time that calls of a lost session may still be answered. The server may have begun to process them before it lost the
 * session.
 */
const LOST_GRACE_MS = 10_000;

export interface PostedCallsOptions {
  readonly clock: Clock;
  /** Limits calls whose response is open although nothing more is needed of it. */
  readonly lingering: LingeringLimits;
  /** Called with each call that leaves. */
  readonly left?: (post: PostedCall) => void;
}

/** The posted calls of a link that have not ended. */
export class PostedCalls {
  readonly #options: PostedCallsOptions;
  readonly #posts = new LinkedList<PostedCall>();
  readonly #lingering: Lingering<PostedCall>;
  readonly #cancelGrace = new Set<() => void>();

  constructor(options: PostedCallsOptions) {
    this.#options = options;
    this.#lingering = new Lingering(options.lingering, (post) => this.abort(post));
  }

  add(post: PostedCall): void {
    this.#posts.add(post);
  }

  /** Returns false if the call had left before. */
  delete(post: PostedCall): boolean {
    this.#lingering.delete(post);
    const wasThere = post.unlink();
    if (wasThere) this.#options.left?.(post);
    return wasThere;
  }

  abort(post: PostedCall): void {
    this.delete(post);
    post.abort();
  }

  /** Aborts the POST of this call's request if it has not been sent completely, and returns the request. */
  withdraw(call: Call): Outgoing | undefined {
    const post = this.find(call);
    if (post === undefined || post.wasSent) return undefined;
    this.abort(post);
    return post.message;
  }

  find(call: Call): PostedCall | undefined {
    for (const post of this.#posts) {
      if (post.message.call === call && post.message.frame.kind === 'request') return post;
    }
    return undefined;
  }

  /** Finds the open call of a request by its id, whether the client's or the bridge's own. */
  findOpen(id: JsonRpcId): PostedCall | undefined {
    for (const post of this.#posts) if (post.isOpen && post.message.frame.id === id) return post;
    for (const post of this.#posts) if (post.isOpen && answersId(id, post.message.frame.id)) return post;
    return undefined;
  }

  /** Tells the calls that the session has no event stream anymore. */
  lostStream(): void {
    for (const post of this.#posts.toArray()) post.lostStream();
  }

  /**
   * Keeps the connection of a call that has been answered or accepted for a limited time, since the server may send
   * further messages on its response.
   */
  linger(post: PostedCall): void {
    this.#lingering.add(post);
  }

  pause(): void {
    for (const post of this.#posts) if (post.message.reply === undefined) post.pause();
  }

  resume(): void {
    for (const post of this.#posts) post.resume();
  }

  /**
   * Removes the calls of sessions before this generation and passes each to `take`. Calls with a response are removed
   * at once, those without one after LOST_GRACE_MS: such a call most likely gets a 404 of its own and can then be
   * repeated.
   */
  takeOlder(generation: number, take: (post: PostedCall) => void): void {
    const takeThose = (isOver: (post: PostedCall) => boolean): void => {
      for (const post of this.#posts.toArray()) {
        if (post.message.session.generation >= generation || !isOver(post)) continue;
        this.abort(post);
        take(post);
      }
    };
    takeThose((post) => post.hasResponse);
    const cancel = this.#options.clock.after(LOST_GRACE_MS, () => {
      this.#cancelGrace.delete(cancel);
      takeThose(() => true);
    });
    this.#cancelGrace.add(cancel);
  }

  close(): void {
    for (const cancel of this.#cancelGrace) cancel();
    this.#cancelGrace.clear();
    // `left` is not called: another bridge may go on with these calls.
    for (const post of this.#posts) {
      post.unlink();
      post.abort();
    }
    this.#lingering.clear();
  }
}

// ---- Responses that the server does not end

export interface LingeringLimits {
  readonly count: number;
  /** Limit on the bytes of the requests whose responses stay open, since they are kept in memory. */
  readonly bytes: number;
  /** Number of responses that are kept regardless of size, since the server may be about to end them. */
  readonly least: number;
}

interface Kept {
  readonly message: Outgoing;
}

/**
 * Responses that have delivered everything needed but that the server has not ended. Beyond the limits the oldest is
 * ended.
 */
export class Lingering<Post extends Kept> {
  readonly #limits: LingeringLimits;
  readonly #end: (oldest: Post) => void;
  /** Oldest first. */
  #posts: Post[] = [];
  #bytes = 0;

  /** @param end called with each response that has to be ended */
  constructor(limits: LingeringLimits, end: (oldest: Post) => void) {
    this.#limits = limits;
    this.#end = end;
  }

  add(post: Post): void {
    this.#posts.push(post);
    this.#bytes += bytesOf(post);
    while (this.#areTooMany) {
      const [oldest] = this.#posts;
      if (oldest === undefined) return;
      this.delete(oldest);
      this.#end(oldest);
    }
  }

  get #areTooMany(): boolean {
    const { length } = this.#posts;
    const { count, bytes, least } = this.#limits;
    return length > count || (length > least && this.#bytes > bytes);
  }

  delete(post: Post): void {
    const index = this.#posts.indexOf(post);
    if (index < 0) return;
    this.#posts.splice(index, 1);
    this.#bytes -= bytesOf(post);
  }

  clear(): void {
    this.#posts = [];
    this.#bytes = 0;
  }
}

function bytesOf({ message }: Kept): number {
  return message.frame.bytes.length;
}
