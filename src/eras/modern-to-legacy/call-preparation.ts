import type { Clock } from '../../deps.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import { CALL_TOOL, LIST_TOOLS, SET_LEVEL } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { ToolListing } from '../../relay/tool-catalogue.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import { type SessionLink, upstreamExchange } from './pool/session-link.ts';
import { listTaskTools, offersTasks, type TaskTools } from './tasks/task-tools.ts';

/** A server that takes longer to set its log level serves the call as it is. */
export const LEVEL_MS = 2000;

/** How a server wants a call: answered when it is done, or as a task. */
export type CallForm = 'plain' | 'task';

/** Whether the server may be told how much to log. */
export function setsLevel({ capabilities }: InitializeResult): boolean {
  return 'logging' in capabilities;
}

export interface CallPreparationOptions {
  readonly clock: Clock;
  readonly link: SessionLink;
  readonly taskTools: TaskTools;
  readonly server: InitializeResult;
  /** The client's. */
  readonly request: Frame;
  /** The call can be sent. */
  readonly ready: (form: CallForm) => void;
}

/**
 * - `idle`: nothing is waited for.
 * - `levelling`: waits until the server logs as the client wants it.
 * - `listing`: waits for the list of tools, which says how the tool is called.
 */
type PreparationState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'levelling'; readonly exchange: Exchange; readonly cancel: () => void }
  | { readonly kind: 'listing'; readonly exchange: Exchange; readonly list: TaskToolList };

/** A list of tools under way. */
interface TaskToolList {
  readonly listing: ToolListing;
  /** The version that the session had when the first page was asked for. */
  readonly toolsVersion: number;
}

const IDLE: PreparationState = { kind: 'idle' };
const LEVEL_REQUEST = requestFrame('level', SET_LEVEL);

/** Whether the server has to be asked how this is called: tools may want to be called as tasks. */
function hasChoice(method: string, { capabilities }: InitializeResult): boolean {
  return method === CALL_TOOL && offersTasks(capabilities);
}

/**
 * What a server is told and asked before a call is sent to it: its log level, and what kind of tool is called. Most calls
 * need neither, and have no preparation.
 */
export class CallPreparation {
  readonly #options: CallPreparationOptions;
  #state: PreparationState = IDLE;
  /** What the server was last told for this call. */
  #level: LogLevel | undefined;

  constructor(options: CallPreparationOptions) {
    this.#options = options;
  }

  #exchangeFor(request: Frame, method: string): Exchange {
    return upstreamExchange({ request, method, nowMs: this.#options.clock.now() });
  }

  start(level: LogLevel | undefined): void {
    if (level === undefined || !setsLevel(this.#options.server)) return this.lookUp();
    const exchange = this.#exchangeFor(LEVEL_REQUEST, SET_LEVEL);
    const cancel = this.#options.clock.after(LEVEL_MS, () => this.lookUp());
    // Before it is sent, for a level the server has already is answered at once.
    this.#state = { kind: 'levelling', exchange, cancel };
    this.#sendLevel(level, exchange);
  }

  /** Another request follows the call, and wants logs of this level; what is under way is not held up for it. */
  setLevel(level: LogLevel): void {
    if (level === this.#level) return;
    this.#sendLevel(level, this.#exchangeFor(LEVEL_REQUEST, SET_LEVEL));
  }

  #sendLevel(level: LogLevel, exchange: Exchange): void {
    this.#level = level;
    this.#options.link.send(requestFrame(exchange.id, SET_LEVEL, { level }), exchange);
  }

  /** Finds out how the tool is called, where there is a choice. */
  lookUp(): void {
    this.stop();
    const { link, taskTools, server, request, ready } = this.#options;
    if (!hasChoice(request.method ?? '', server)) return ready('plain');
    const { session } = link;
    const isTask = taskTools.isRequired(session, this.#toolName);
    if (isTask === undefined) return this.#ask({ listing: listTaskTools(), toolsVersion: session.toolsVersion }, {});
    ready(isTask ? 'task' : 'plain');
  }

  get #toolName(): unknown {
    return readField(this.#options.request, 'name');
  }

  #ask(list: TaskToolList, params: object): void {
    const { link } = this.#options;
    const request = requestFrame('tools', LIST_TOOLS, params);
    const exchange = this.#exchangeFor(request, LIST_TOOLS);
    this.#state = { kind: 'listing', exchange, list };
    link.send(request, exchange);
  }

  #listed(list: TaskToolList, answer: Frame): void {
    const { listing, toolsVersion } = list;
    listing.read(answer);
    const cursor = listing.nextCursor;
    if (cursor !== undefined) return this.#ask(list, { cursor });
    this.stop();
    const { link, taskTools, ready } = this.#options;
    // What could not be looked at is looked at with the next call.
    if (answer.kind === 'result') taskTools.learn(link.session, toolsVersion, listing.tools);
    const name = this.#toolName;
    ready(typeof name === 'string' && listing.tools.find(name) !== undefined ? 'task' : 'plain');
  }

  answered(frame: Frame, exchange: Exchange): void {
    const state = this.#state;
    if (state.kind === 'idle' || exchange !== state.exchange) return;
    exchange.settle();
    if (state.kind === 'levelling') this.lookUp();
    else this.#listed(state.list, frame);
  }

  stop(): void {
    if (this.#state.kind === 'levelling') this.#state.cancel();
    this.#state = IDLE;
  }
}
