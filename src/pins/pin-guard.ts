import { ByteQueue } from '../collections/bounded-collections.ts';
import type { Deps } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { readToolName } from '../mcp/classify/ambiguity.ts';
import { findCanceledId } from '../mcp/classify/correlators.ts';
import { type RequestMetadata, readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { readDefinitions, type ToolDefinition } from '../mcp/classify/tool-definition.ts';
import { shapeTools } from '../mcp/translate/shape-tools.ts';
import { CALL_TOOL, CANCELED, LIST_TOOLS, TOOLS_CHANGED } from '../mcp/vocabulary/methods.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS } from '../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../relay/call.ts';
import type { ServerFault } from '../relay/ports.ts';
import { UNCLEAR_TOOL_NAME } from '../relay/tool-view.ts';
import type { Connection, Guard } from '../upstream/connection.ts';
import { type Frame, idToken, type JsonRpcId } from '../wire/frame.ts';
import { errorFrame } from '../wire/write-message.ts';
import { LIST_TIMEOUT_MS, OwnListing } from './own-listing.ts';
import type { Mismatch, PinnedServer } from './pinned-server.ts';
import { MAX_PINNED_TOOLS } from './pins.ts';

/**
 * Time for which a server that announces no change is taken to have the tools that it listed. A host calls several tools
 * in this time, and a change of a definition can do no harm before a client has listed it.
 */
export const TRUST_MS = 60_000;
/**
 * Messages that wait for a list before their sender is paused. Until then, the sender is still read, because the server may
 * ask its client something before it lists its tools.
 */
const PAUSE_LIMITS = { maxItems: 64, maxBytes: 2 ** 20 };
/** Messages that wait for a list. Few follow once their sender is paused. */
const HELD_LIMITS = { maxItems: 1024, maxBytes: 64 * 2 ** 20 };
/** Lists in a row for one call, if the server announces a change while it lists its tools. */
const MAX_LISTINGS = 3;
/** Lists that clients have asked for and not got. Servers answer them in a moment. */
const MAX_OPEN_LISTS = 4096;

const NO_LANE: Lane = { isOpen: true };

interface Held {
  readonly frame: Frame;
  readonly call: Call | undefined;
}

export interface PinGuardOptions {
  readonly connection: Connection;
  readonly pins: PinnedServer;
  readonly tools: KnownTools;
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
}

/** The tools that the server was last seen to offer, on a connection or to a caller. */
export class KnownTools {
  /** Tools that differ from their pins, by the name that the server gives them. */
  readonly mismatches = new Map<string, Mismatch>();
  #version = -1;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** Returns true if all tools were compared with these pins, and the server has not announced a change since. */
  isCurrent(version: number, nowMs: number): boolean {
    return version === this.#version && nowMs < this.#untilMs;
  }

  replace(mismatches: ReadonlyMap<string, Mismatch>, version: number, nowMs: number): void {
    this.mismatches.clear();
    for (const [name, mismatch] of mismatches) this.mismatches.set(name, mismatch);
    this.#version = version;
    this.#untilMs = nowMs + TRUST_MS;
  }

  invalidate(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }
}

/**
 * Keeps tools that differ from their pins from the clients of one connection. It sees the server's own definitions, in
 * the server's own era: messages pass here before they are translated, shared or shaped.
 *
 * A client may call a tool that it knows from an earlier process. So before a call goes on, the server's list is known
 * here: if it is not, the bridge asks for it, and the call waits, with everything that comes after it, in its order.
 * A list of a client waits only for a server that has no pins yet, whose tools have to be pinned as a whole.
 */
export class PinGuard implements Guard {
  readonly #connection: Connection;
  readonly #pins: PinnedServer;
  readonly #tools: KnownTools;
  readonly #deps: PinGuardOptions['deps'];
  /** The eras of lists that clients wait for, by the ids of their requests. */
  readonly #lists = new Map<JsonRpcId, Era>();
  #held: ByteQueue<Held> | undefined;
  #listing: OwnListing | undefined;
  /** The id of the latest listing, whose late answer is for nobody. */
  #lateId: string | undefined;
  #cancelTimer: (() => void) | undefined;
  #listings = 0;
  #hasChanged = false;
  /** True if the sender is paused because of what waits. */
  #owesDrain = false;
  #isOver = false;

  constructor({ connection, pins, tools, deps }: PinGuardOptions) {
    this.#connection = connection;
    this.#pins = pins;
    this.#tools = tools;
    this.#deps = deps;
  }

  // ---- to the server

  sends(frame: Frame, call: Call | undefined): boolean {
    // The server may wait for an answer before it lists its tools.
    if (frame.isResponse) return this.#connection.pass(frame, call);
    return this.#held === undefined ? this.#send(frame, call) : this.#hold(frame, call);
  }

  #send(frame: Frame, call: Call | undefined): boolean {
    if (frame.method === CALL_TOOL) return this.#sendCall(frame, call);
    if (frame.method === LIST_TOOLS && frame.kind === 'request') return this.#sendList(frame, call);
    if (frame.method === CANCELED) this.#forgetList(findCanceledId(frame)?.value);
    return this.#connection.pass(frame, call);
  }

  #sendCall(frame: Frame, call: Call | undefined): boolean {
    this.#pins.look();
    if (!this.#tools.isCurrent(this.#pins.version, this.#deps.clock.now())) return this.#listFor(frame, call);
    return this.#decide(frame, call);
  }

  /** Passes a call on, or refuses it, by what is known of the tools. */
  #decide(frame: Frame, call: Call | undefined): boolean {
    const refusal = this.#refusalOf(frame);
    return refusal === undefined ? this.#connection.pass(frame, call) : this.#refuse(frame, call, refusal);
  }

  #refusalOf(frame: Frame): RpcError | undefined {
    const name = readToolName(frame);
    if (name === undefined) return UNCLEAR_TOOL_NAME;
    const mismatch = this.#tools.mismatches.get(name);
    if (mismatch !== undefined) return rpcErrorOf(this.#pins.refusalOf(name, mismatch));
    // A tool that is neither listed nor pinned cannot be accepted, so it is refused like one that does not exist.
    if (!this.#pins.has(name)) return { code: INVALID_PARAMS, message: `Unknown tool: ${name.slice(0, 200)}` };
    return undefined;
  }

  /** Answers a request in place of the server. A notification has no answer. */
  #refuse(frame: Frame, call: Call | undefined, error: RpcError): boolean {
    if (frame.kind === 'request') this.#connection.deliver(errorFrame(idToken(frame), error), call);
    return true;
  }

  #sendList(frame: Frame, call: Call | undefined): boolean {
    this.#pins.look();
    return this.#pins.isPinned ? this.#passList(frame, call) : this.#listFor(frame, call);
  }

  #passList(frame: Frame, call: Call | undefined): boolean {
    if (this.#lists.size >= MAX_OPEN_LISTS) return this.#refuse(frame, call, rpcErrorOf(TOO_MANY_LISTS));
    this.#lists.set(frame.id as JsonRpcId, eraOf(metadataOf(frame)));
    return this.#connection.pass(frame, call);
  }

  #forgetList(id: JsonRpcId | undefined): void {
    if (id !== undefined) this.#lists.delete(id);
  }

  // ---- what waits

  #hold(frame: Frame, call: Call | undefined): boolean {
    const held = this.#held as ByteQueue<Held>; // called while there is one
    if (frame.method === CANCELED) {
      // A request that has not been sent is dropped, with its cancellation.
      const id = findCanceledId(frame)?.value;
      const isMeant = ({ frame: waiting }: Held): boolean => waiting.kind === 'request' && waiting.id === id;
      if (held.removeFirst(isMeant) !== undefined) return true;
    }
    if (held.fits({ frame, call })) held.add({ frame, call });
    else if (frame.kind === 'request') this.#refuse(frame, call, rpcErrorOf(TOO_MUCH_WAITS));
    else this.#deps.log.debug({ method: frame.method }, 'notification dropped: too much waits for the list of tools');
    const isFull = held.length >= PAUSE_LIMITS.maxItems || held.bytes >= PAUSE_LIMITS.maxBytes;
    this.#owesDrain ||= isFull;
    return !isFull;
  }

  /** Asks for the server's tools, for a message that waits until they are known. */
  #listFor(frame: Frame, call: Call | undefined): boolean {
    this.#held = new ByteQueue(HELD_LIMITS, ({ frame: { bytes } }) => bytes.length);
    this.#held.add({ frame, call });
    this.#listings = 0;
    this.#list(metadataOf(frame), call?.lane ?? NO_LANE);
    return true;
  }

  #list(metadata: RequestMetadata | undefined, lane: Lane): void {
    const { clock, randomId } = this.#deps;
    const id = `mcp-portage-pins-${randomId()}`;
    this.#lateId = id;
    this.#listings += 1;
    this.#hasChanged = false;
    const listing = new OwnListing({
      id,
      metadata,
      lane,
      nowMs: clock.now(),
      send: (frame, call) => void this.#connection.pass(frame, call),
      ended: (outcome) => {
        this.#cancelTimer?.();
        // The server has announced a change, which may have come too late for this list.
        if (this.#hasChanged && this.#listings < MAX_LISTINGS && Array.isArray(outcome)) {
          return this.#list(metadata, lane);
        }
        this.#listing = undefined;
        void this.#learn(outcome, eraOf(metadata));
      },
    });
    this.#listing = listing;
    this.#cancelTimer = clock.after(LIST_TIMEOUT_MS, () => listing.timeOut());
    listing.start();
  }

  async #learn(outcome: readonly ToolDefinition[] | BridgeError, era: Era): Promise<void> {
    if (outcome instanceof BridgeError) return this.#release(outcome);
    try {
      this.#pins.look();
      if (!this.#pins.isPinned) await this.#pins.pinFirst(outcome, era);
    } catch (thrown) {
      const error = toBridgeError(thrown);
      this.#deps.log.error({ code: error.code }, error.message);
      return this.#release(error);
    }
    const mismatches = new Map<string, Mismatch>();
    for (const tool of outcome) {
      const mismatch = this.#pins.compare(tool, era);
      if (mismatch !== undefined) mismatches.set(tool.name, mismatch);
    }
    this.#tools.replace(mismatches, this.#pins.version, this.#deps.clock.now());
    if (this.#hasChanged) this.#tools.invalidate();
    this.#release(undefined);
  }

  /** Decides on everything that waits, in its order. After a failure, no call goes on. */
  #release(failure: BridgeError | undefined): void {
    let hasCapacity = true;
    // Messages that the owner sends meanwhile join the end, so that nothing overtakes.
    for (let next = this.#held?.shift(); next !== undefined && !this.#isOver; next = this.#held?.shift()) {
      const { frame, call } = next;
      if (frame.method === CALL_TOOL) {
        if (failure === undefined) hasCapacity = this.#decide(frame, call);
        else this.#refuse(frame, call, rpcErrorOf(failure));
      } else if (frame.method === LIST_TOOLS && frame.kind === 'request') {
        // The server's own error is better than one of the bridge.
        hasCapacity = this.#passList(frame, call);
      } else {
        hasCapacity = this.#connection.pass(frame, call);
      }
    }
    this.#held = undefined;
    if (this.#isOver || !this.#owesDrain) return;
    this.#owesDrain = false;
    // If the server has no room either, it says so itself.
    if (hasCapacity) this.#connection.serverDrained();
  }

  // ---- from the server

  receives(frame: Frame, call: Call | undefined): Frame | undefined {
    if (frame.method === TOOLS_CHANGED) {
      this.#hasChanged = true;
      this.#tools.invalidate();
    }
    if (this.#listing?.isAbout(frame, call) === true) {
      if (frame.isResponse) this.#listing.answered(frame);
      // Other messages on the way of the answer belong to no call of a client.
      else this.#connection.deliver(frame, undefined);
      return undefined;
    }
    if (!frame.isResponse) return frame;
    if (frame.id === this.#lateId) return undefined;
    const era = this.#lists.get(frame.id as JsonRpcId);
    if (era === undefined) return frame;
    this.#lists.delete(frame.id as JsonRpcId);
    return frame.kind === 'result' ? this.#shown(frame, era) : frame;
  }

  /** Returns the list without the tools that differ from their pins. */
  #shown(list: Frame, era: Era): Frame {
    this.#pins.look();
    if (!this.#pins.isPinned) return errorFrame(idToken(list), rpcErrorOf(NOT_PINNED));
    const page = readDefinitions(list);
    const hidden = new Set<string>();
    for (const tool of page?.tools ?? []) {
      const mismatch = this.#pins.compare(tool, era);
      if (mismatch === undefined) continue;
      hidden.add(tool.name);
      // A server can list new tools without end, and a tool without a pin is not called in any case.
      const isKept = this.#pins.has(tool.name) || this.#tools.mismatches.size < MAX_PINNED_TOOLS;
      if (isKept) this.#tools.mismatches.set(tool.name, mismatch);
    }
    for (const { name } of page?.tools ?? []) if (!hidden.has(name)) this.#tools.mismatches.delete(name);
    const shown = page && shapeTools(list, (name) => (hidden.has(name) ? 'hidden' : 'as-is'));
    return shown ?? errorFrame(idToken(list), rpcErrorOf(UNREADABLE_LIST));
  }

  faults(fault: ServerFault): boolean {
    if (fault.id === undefined || fault.id !== this.#lateId) {
      this.#forgetList(fault.id);
      return false;
    }
    this.#listing?.failed(fault.error);
    return true;
  }

  ended(): void {
    this.#isOver = true;
    this.#cancelTimer?.();
    this.#held = undefined;
    this.#listing = undefined;
    this.#lists.clear();
  }
}

/** The metadata of a modern message. Undefined for a message of the legacy era. */
function metadataOf(frame: Frame): RequestMetadata | undefined {
  const metadata = readRequestMetadata(frame);
  return 'fault' in metadata ? undefined : metadata;
}

function eraOf(metadata: RequestMetadata | undefined): Era {
  return metadata === undefined ? 'legacy' : 'modern';
}

const TOO_MUCH_WAITS = new BridgeError(
  'ERR_SESSION_BUSY',
  "Too much waits for the server's list of tools; wait for answers before sending more.",
  { retryAfterMs: 1000 },
);

const TOO_MANY_LISTS = new BridgeError(
  'ERR_SESSION_BUSY',
  `${MAX_OPEN_LISTS} lists of tools are unanswered; wait for answers before asking for more.`,
  { retryAfterMs: 1000 },
);

const NOT_PINNED = new BridgeError(
  'ERR_PIN_UNSURE',
  "The server's tools could not be pinned, so none is shown; the next request tries again.",
);

const UNREADABLE_LIST = new BridgeError(
  'ERR_PIN_UNSURE',
  'The server sent a list of tools that cannot be compared with their pins: it is malformed, or longer than 20000 tools.',
);
