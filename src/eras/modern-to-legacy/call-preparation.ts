import type { Clock } from '../../deps.ts';
import type { TaskSupport } from '../../mcp/classify/tool-list.ts';
import type { LogLevel } from '../../mcp/vocabulary/client-declarations.ts';
import { CALL_TOOL, LIST_TOOLS, SET_LEVEL } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { ToolListing } from '../../relay/tool-catalog.ts';
import type { Frame } from '../../wire/frame.ts';
import type { SessionUser } from './pool/session-user.ts';
import { listTaskTools, offersTasks, type TaskTools, taskSupportIn } from './tasks/task-tools.ts';

/** A server that takes longer to set its log level serves the call as it is. */
export const LEVEL_MS = 2000;

/** Returns true if the server can be told how much to log. */
export function setsLevel({ capabilities }: InitializeResult): boolean {
  return 'logging' in capabilities;
}

export interface CallPreparationOptions {
  readonly clock: Clock;
  readonly user: Pick<SessionUser, 'ask' | 'session'>;
  readonly taskTools: TaskTools;
  readonly server: InitializeResult;
  /** The client's. */
  readonly request: Frame;
  /** Called when the call can be sent, with what the server says of the tool. */
  readonly ready: (support: TaskSupport) => void;
}

/**
 * - `idle`: nothing is waited for.
 * - `leveling`: waits until the server logs as the client wants it.
 * - `listing`: waits for the list of tools, which says whether the tool can be called as a task.
 */
type PreparationState =
  | { readonly kind: 'idle' | 'listing' }
  | { readonly kind: 'leveling'; readonly cancel: () => void };

/** A list of tools under way. */
interface TaskToolList {
  readonly listing: ToolListing;
  /** The version that the session had when the first page was asked for. */
  readonly toolsVersion: number;
}

const IDLE: PreparationState = { kind: 'idle' };
const LISTING: PreparationState = { kind: 'listing' };

/** Returns true if the server has to be asked whether it takes the call as a task. */
function hasChoice(method: string, { capabilities }: InitializeResult): boolean {
  return method === CALL_TOOL && offersTasks(capabilities);
}

/**
 * Prepares a call at its server: sets the log level, and finds out whether the tool can be called as a task. Most calls
 * need neither, and have no preparation.
 */
export class CallPreparation {
  readonly #options: CallPreparationOptions;
  #state: PreparationState = IDLE;
  /** The level that the server was last told for this call. */
  #level: LogLevel | undefined;

  constructor(options: CallPreparationOptions) {
    this.#options = options;
  }

  start(level: LogLevel | undefined): void {
    if (level === undefined || !setsLevel(this.#options.server)) return this.lookUp();
    this.#state = { kind: 'leveling', cancel: this.#options.clock.after(LEVEL_MS, () => this.lookUp()) };
    this.#sendLevel(level, () => {
      if (this.#state.kind === 'leveling') this.lookUp();
    });
  }

  /** Another request follows the call, and wants logs of this level; what is under way is not held up for it. */
  setLevel(level: LogLevel): void {
    if (level === this.#level) return;
    this.#sendLevel(level, () => {});
  }

  #sendLevel(level: LogLevel, answered: () => void): void {
    this.#level = level;
    this.#options.user.ask(SET_LEVEL, { level }, answered);
  }

  /** Finds out whether the tool can be called as a task. */
  lookUp(): void {
    this.stop();
    const { user, taskTools, server, request, ready } = this.#options;
    if (!hasChoice(request.method ?? '', server)) return ready('forbidden');
    const { session } = user;
    const support = taskTools.supportOf(session, this.#toolName);
    if (support === undefined) return this.#ask({ listing: listTaskTools(), toolsVersion: session.toolsVersion }, {});
    ready(support);
  }

  get #toolName(): unknown {
    return readField(this.#options.request, 'name');
  }

  #ask(list: TaskToolList, params: object): void {
    this.#state = LISTING;
    this.#options.user.ask(LIST_TOOLS, params, (answer) => this.#listed(list, answer));
  }

  #listed(list: TaskToolList, answer: Frame): void {
    const { listing, toolsVersion } = list;
    listing.read(answer);
    const cursor = listing.nextCursor;
    if (cursor !== undefined) return this.#ask(list, { cursor });
    this.stop();
    const { user, taskTools, ready } = this.#options;
    // A list that could not be read is asked for again with the next call.
    if (answer.kind === 'result') taskTools.learn(user.session, toolsVersion, listing.tools);
    ready(taskSupportIn(listing.tools, this.#toolName));
  }

  stop(): void {
    if (this.#state.kind === 'leveling') this.#state.cancel();
    this.#state = IDLE;
  }
}
