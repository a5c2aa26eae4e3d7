import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { rewriteSubscriptionId } from '../../mcp/classify/correlators.ts';
import { type ListenFilter, readListenFilter } from '../../mcp/translate/listen-filter.ts';
import { readServerInfo } from '../../mcp/translate/results.ts';
import { META_SERVER_INFO, META_SUBSCRIPTION_ID } from '../../mcp/vocabulary/meta.ts';
import {
  isListChanged,
  LISTEN_ACKNOWLEDGED,
  PROMPTS_CHANGED,
  RESOURCE_UPDATED,
  RESOURCES_CHANGED,
  SUBSCRIBE,
  TOOLS_CHANGED,
} from '../../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { MAX_SUBSCRIBED } from '../../mcp/vocabulary/subscribed-uris.ts';
import { TASK_CHANGED } from '../../mcp/vocabulary/task-extension.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import { editFrame, type Frame, idToken, withParams } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { errorFrame, joinMembers, notificationFrame, resultFrame } from '../../wire/write-message.ts';
import type { LegacyPool } from './pool/legacy-pool.ts';
import { SessionUser } from './pool/session-user.ts';
import type { SessionWanted } from './pool/session-wanted.ts';
import type { Follower } from './questions/parked-call.ts';
import type { HostedTask } from './tasks/hosted-task.ts';

/** A resource whose server has not agreed by then is left out. */
export const SUBSCRIBE_MS = 5000;
/** A server that says more meanwhile is not waited for any longer. */
export const MAX_EARLY = 1000;
export const MAX_EARLY_BYTES = 1024 * 1024;

/** Takes the messages of a subscription: the request that has opened it. */
export type ListenHost = Pick<Follower, 'notify' | 'settle' | 'serverDrained'>;

export interface ListenOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly pool: LegacyPool;
  readonly wanted: SessionWanted;
  readonly request: Frame;
  /** The tasks whose changes the client subscribes to, too. */
  readonly tasks: readonly HostedTask[];
  readonly host: ListenHost;
  /** Called once, when the subscription has ended. */
  readonly closed: () => void;
}

/**
 * - `opening`: waits until the server serves.
 * - `subscribing`: waits for what the server says to the resources.
 * - `listening`: the client knows what it will hear of.
 * - `closed`.
 */
type ListenState =
  | { readonly kind: 'opening' }
  | { readonly kind: 'subscribing'; readonly open: Set<string>; readonly cancel: () => void }
  | { readonly kind: 'listening' }
  | { readonly kind: 'closed' };

const CLOSED: ListenState = { kind: 'closed' };

/**
 * A `subscriptions/listen` of a modern client. It is kept with the subscriptions and notifications of a legacy server.
 */
export class ClientSubscription extends SessionUser {
  readonly #options: ListenOptions;
  readonly #id: Buffer;
  readonly #granted: string[] = [];
  readonly #watches: TaskWatch[] = [];
  /** The notifications that came before the acknowledgment, which must be the first message. */
  readonly #early = new Map<string, Frame>();
  #earlyBytes = 0;
  #state: ListenState = { kind: 'opening' };
  #filter: ListenFilter | undefined;
  #serverInfo: Fields | undefined;

  constructor(options: ListenOptions) {
    super(options.pool, options.wanted);
    this.#options = options;
    this.#id = idToken(options.request);
  }

  /** Throws a BridgeError when there is no session to be had. */
  start(): void {
    const filter = readListenFilter(this.#options.request);
    if (filter === undefined) return this.#fail(NO_FILTER);
    this.#filter = filter;
    this.joinSession();
  }

  opened(result: InitializeResult): void {
    const { clock } = this.#options;
    this.#serverInfo = readServerInfo(result.serverInfo);
    const wanted = this.#filter ?? NOTHING;
    const { tools, prompts, resources } = result.capabilities;
    this.#filter = {
      toolsListChanged: wanted.toolsListChanged && hasFlag(tools, 'listChanged'),
      promptsListChanged: wanted.promptsListChanged && hasFlag(prompts, 'listChanged'),
      resourcesListChanged: wanted.resourcesListChanged && hasFlag(resources, 'listChanged'),
      resourceSubscriptions: wanted.resourceSubscriptions,
    };
    // No more than can be granted: one message may name a million, and each would be asked for.
    const named = hasFlag(resources, 'subscribe') ? new Set(wanted.resourceSubscriptions) : new Set<string>();
    const uris = [...named].slice(0, MAX_SUBSCRIBED);
    const cancel = clock.after(SUBSCRIBE_MS, () => this.#acknowledge());
    this.#state = { kind: 'subscribing', open: new Set(uris), cancel };
    for (const uri of uris) this.ask(SUBSCRIBE, { uri }, (answer) => this.#subscribed(uri, answer));
    if (uris.length === 0) this.#acknowledge();
  }

  heard(frame: Frame): void {
    if (frame.kind !== 'notification') return;
    if (!this.#isWanted(frame.method)) return this.#unwanted(frame);
    if (this.#state.kind === 'listening') return this.#options.host.notify(stampSubscription(frame, this.#id));
    // The server may say any amount before it serves, and nothing can be acknowledged by then; of each list it is
    // enough to keep that it has changed.
    this.#keepEarly(this.#state.kind === 'opening' ? notificationFrame(frame.method ?? '') : frame);
    if (this.#early.size >= MAX_EARLY || this.#earlyBytes >= MAX_EARLY_BYTES) this.#acknowledge();
  }

  /** A notification of an extension has no member in the filter that is known here, so none was granted. */
  #unwanted({ method }: Frame): void {
    if (isListChanged(method)) return;
    this.#options.log.debug(
      { method },
      'notification dropped: a subscription brings only changes that its filter names',
    );
  }

  #keepEarly(change: Frame): void {
    const said = change.bytes.toString('latin1');
    if (this.#early.has(said)) return;
    this.#early.set(said, stampSubscription(change, this.#id));
    this.#earlyBytes += change.bytes.length;
  }

  #subscribed(uri: string, answer: Frame): void {
    if (this.#state.kind !== 'subscribing') return;
    const { open } = this.#state;
    open.delete(uri);
    if (answer.kind === 'result') this.#granted.push(uri);
    if (open.size === 0) this.#acknowledge();
  }

  #isWanted(method: string | undefined): boolean {
    switch (method) {
      case TOOLS_CHANGED:
        return this.#filter?.toolsListChanged === true;
      case PROMPTS_CHANGED:
        return this.#filter?.promptsListChanged === true;
      case RESOURCES_CHANGED:
        return this.#filter?.resourcesListChanged === true;
      // The session passes this only to links that have subscribed.
      case RESOURCE_UPDATED:
        return true;
      default:
        return false;
    }
  }

  #acknowledge(): void {
    if (this.#state.kind !== 'subscribing') return;
    this.#state.cancel();
    this.#state = { kind: 'listening' };
    const { host, tasks } = this.#options;
    const { toolsListChanged, promptsListChanged, resourcesListChanged } = this.#filter ?? NOTHING;
    // [spec 2026-07-28 basic/patterns/subscriptions#acknowledgment] The acknowledgment leaves out what is not granted.
    const notifications = {
      ...(toolsListChanged && { toolsListChanged }),
      ...(promptsListChanged && { promptsListChanged }),
      ...(resourcesListChanged && { resourcesListChanged }),
      ...(this.#granted.length > 0 && { resourceSubscriptions: this.#granted }),
      ...(tasks.length > 0 && { taskIds: tasks.map(({ id }) => id) }),
    };
    host.notify(stampSubscription(notificationFrame(LISTEN_ACKNOWLEDGED, { notifications }), this.#id));
    // Early notifications were kept by the filter that the client wanted, and the granted one may be narrower.
    for (const frame of this.#early.values()) if (this.#isWanted(frame.method)) host.notify(frame);
    this.#early.clear();
    const tell = (frame: Frame): void => host.notify(stampSubscription(frame, this.#id));
    for (const task of tasks) this.#watches.push(new TaskWatch(task, tell));
  }

  /** Called when there is no server, or it does not come back. A restart is not reported here: the session subscribes again. */
  lost(reason: BridgeError): void {
    if (this.#state.kind === 'listening') this.#end(this.#gracefulEnd());
    else this.#fail(rpcErrorOf(reason));
  }

  /** [spec 2026-07-28 basic/patterns/subscriptions#graceful-closure] */
  #gracefulEnd(): Frame {
    const serverInfo = this.#serverInfo && { [META_SERVER_INFO]: this.#serverInfo };
    const _meta = { [META_SUBSCRIPTION_ID]: 0, ...serverInfo };
    const result = resultFrame(this.#id, { resultType: 'complete', _meta });
    return rewriteSubscriptionId(result, this.#id) ?? result;
  }

  #fail(error: RpcError): void {
    this.#end(errorFrame(this.#id, error));
  }

  #end(answer: Frame): void {
    if (this.#state.kind === 'closed') return;
    this.detach();
    this.#options.host.settle(answer);
  }

  serverDrained(): void {
    this.#options.host.serverDrained();
  }

  /** Ends the subscription. The server is told of those that no other client has. */
  detach(): void {
    if (this.#state.kind === 'closed') return;
    if (this.#state.kind === 'subscribing') this.#state.cancel();
    this.#state = CLOSED;
    for (const watch of this.#watches.splice(0)) watch.stop();
    this.leaveSession();
    this.#options.closed();
  }
}

const NO_FILTER: RpcError = { code: INVALID_PARAMS, message: 'params.notifications must be an object' };
const NOTHING: ListenFilter = {
  toolsListChanged: false,
  promptsListChanged: false,
  resourcesListChanged: false,
  resourceSubscriptions: [],
};

function hasFlag(capability: unknown, flag: string): boolean {
  return asFields(capability)?.[flag] === true;
}

/** Each subscription holds a session open. */
export const MAX_LISTENING = 1024;

/** Counts the subscriptions before a legacy server, of each caller and together. */
export class SubscriptionSlots {
  readonly #perCaller: number;
  readonly #ofCaller = new Map<string, number>();
  #taken = 0;

  constructor(perCaller = MAX_LISTENING) {
    this.#perCaller = perCaller;
  }

  /** An error: no slot is free. Each slot that was taken is released once. */
  take(principal: string): BridgeError | undefined {
    const own = this.#ofCaller.get(principal) ?? 0;
    if (own >= this.#perCaller) return tooMany(`This caller has ${own}`);
    if (this.#taken >= MAX_LISTENING) return tooMany(`All callers together have ${MAX_LISTENING}`);
    this.#taken += 1;
    this.#ofCaller.set(principal, own + 1);
    return undefined;
  }

  release(principal: string): void {
    this.#taken -= 1;
    const own = (this.#ofCaller.get(principal) ?? 0) - 1;
    if (own === 0) this.#ofCaller.delete(principal);
    else this.#ofCaller.set(principal, own);
  }
}

function tooMany(what: string): BridgeError {
  const message = `${what} subscriptions at this server, the most allowed; close some, or try again later.`;
  return new BridgeError('ERR_SESSION_BUSY', message);
}

/**
 * The notification as part of a subscription; `id` is the token of the `subscriptions/listen` as the client wrote it.
 * [spec 2026-07-28 basic/patterns/subscriptions#receiving-notifications]
 */
export function stampSubscription(frame: Frame, id: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  const own = Buffer.concat([Buffer.from(`{${JSON.stringify(META_SUBSCRIPTION_ID)}:`), id, Buffer.from('}')]);
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  if (params === undefined) return withParams(frame, Buffer.concat([Buffer.from('{"_meta":'), own, Buffer.from('}')]));
  const meta = ObjectEditor.read(bytes, params.value('_meta')?.start ?? -1, [META_SUBSCRIPTION_ID]);
  if (meta === undefined) {
    params.set('_meta', own);
  } else {
    meta.set(META_SUBSCRIPTION_ID, id);
    params.edit('_meta', meta.edits());
  }
  return editFrame(frame, params.edits());
}

/**
 * Tells a client of one task: its state now, and again after each change. [SEP-2663] each notification says all that
 * `tasks/get` would.
 */
export class TaskWatch {
  readonly #task: HostedTask;
  readonly #tell: (notification: Frame) => void;
  readonly stop: () => void;
  /** The digest of the state that was told last. The state itself may be large, and many may listen. */
  #told: string | undefined;

  constructor(task: HostedTask, tell: (notification: Frame) => void) {
    this.#task = task;
    this.#tell = tell;
    this.#look();
    this.stop = task.watch(() => this.#look());
  }

  #look(): void {
    const members = this.#task.members();
    if (members === undefined) return;
    const params = joinMembers(members);
    const digest = createHash('sha256').update(params).digest('base64');
    if (digest === this.#told) return;
    this.#told = digest;
    this.#tell(withParams(notificationFrame(TASK_CHANGED), params));
  }
}
