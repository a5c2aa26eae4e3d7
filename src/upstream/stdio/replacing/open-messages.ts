import { isRepeatable } from '../../../mcp/classify/repeatable.ts';
import { type ListenFilter, readListenFilter } from '../../../mcp/translate/listen-filter.ts';
import { META_SUBSCRIPTION_ID } from '../../../mcp/vocabulary/meta.ts';
import {
  CANCELED,
  DISCOVER,
  INITIALIZE,
  INITIALIZED,
  LISTEN,
  LISTEN_ACKNOWLEDGED,
} from '../../../mcp/vocabulary/methods.ts';
import { asFields, type Fields, readField, readPayload } from '../../../mcp/vocabulary/payload.ts';
import type { ClientMessage } from '../../../relay/call.ts';
import { isStanding, SessionState } from '../../../relay/sessions/session-state.ts';
import { type Frame, idOfOtherType, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { notificationFrame } from '../../../wire/write-message.ts';

/** A request that the process has not answered. */
interface OpenRequest {
  readonly method: string;
  /** The message, if it can safely be sent to the next process. Undefined for all others, which are not kept. */
  readonly repeatable: ClientMessage | undefined;
}

/** What is left of the messages with a process that ends. */
export interface LeftOver {
  /** Requests that the next process may get. */
  readonly repeatable: readonly ClientMessage[];
  /** The ids of requests that nobody will answer. */
  readonly lost: readonly JsonRpcId[];
  /** The ids of questions whose answers nobody waits for, as the client knows them. */
  readonly questions: readonly JsonRpcId[];
}

/** A subscription of the modern era, and the changes that it asks for. */
export interface Listening {
  readonly id: JsonRpcId;
  readonly filter: ListenFilter;
}

/**
 * Follows what passes between one connection and the processes behind it: the requests and questions that are not
 * answered, and the state that the next process is brought to. The number of requests is limited by the limits of calls.
 */
export class OpenMessages {
  /** The state of a session of the legacy era. */
  readonly session = new SessionState();
  readonly #requests = new Map<JsonRpcId, OpenRequest>();
  /** The `subscriptions/listen` requests, which stay open by design and are sent to each process. */
  readonly #listening = new Map<JsonRpcId, ClientMessage>();
  /** Subscriptions that a further process has not acknowledged yet. The client has seen the first acknowledgment. */
  readonly #reopened = new Set<JsonRpcId>();
  /** Unanswered questions of the process: the id that the client was shown, and the id that the process gave. */
  readonly #questions = new Map<JsonRpcId, JsonRpcId>();
  #capabilities: Fields | undefined;
  #hasModernAnswer = false;
  #processes = 1;
  /** True while the process is being replaced. The ends of subscriptions are then ends of the process, and not passed on. */
  isReplacing = false;

  /** The era in which the server has answered. Undefined before that: the next process needs to know nothing. */
  get era(): 'legacy' | 'modern' | undefined {
    if (this.session.offer !== undefined) return 'legacy';
    return this.#hasModernAnswer ? 'modern' : undefined;
  }

  /** The capabilities of the server. Undefined if it has not said them on this connection. */
  get capabilities(): Fields | undefined {
    return this.#capabilities;
  }

  /** True if the process owes no answer. */
  get isIdle(): boolean {
    return this.#requests.size === 0;
  }

  // ---- from the client

  /** Notes a request that the process gets. */
  requested(message: ClientMessage): void {
    const { frame } = message;
    const { id, method = '' } = frame;
    if (id === undefined) return;
    if (method === LISTEN) this.#listening.set(id, message);
    else {
      const isKept = method === INITIALIZE || isRepeatable(frame);
      this.#requests.set(id, { method, repeatable: isKept ? message : undefined });
    }
  }

  /** Notes a notification of the client, whether or not there is a process to get it. */
  notified(frame: Frame): void {
    if (frame.method === INITIALIZED) this.session.isInitialized = true;
    const canceled = canceledBy(frame);
    if (canceled === undefined) return;
    this.#requests.delete(canceled);
    this.#listening.delete(canceled);
  }

  /** Returns the client's answer as the process gets it. Undefined if the process that asked is gone. */
  toProcess(answer: Frame): Frame | undefined {
    const shown = answer.id === undefined ? undefined : keyOf(this.#questions, answer.id);
    const own = shown === undefined ? undefined : this.#questions.get(shown);
    if (shown === undefined || own === undefined) return undefined;
    this.#questions.delete(shown);
    return own === answer.id ? answer : withId(answer, own);
  }

  // ---- from the process

  /** Returns the message as the client gets it. Undefined if it is not for the client. */
  toClient(frame: Frame): Frame | undefined {
    switch (frame.kind) {
      case 'request':
        return this.#asked(frame);
      case 'notification':
        return this.#told(frame);
      default:
        return this.#answered(frame);
    }
  }

  /** Notes that a request has got an answer that cannot be read. */
  failed(id: JsonRpcId): void {
    const key = keyOf(this.#requests, id);
    if (key !== undefined) this.#requests.delete(key);
  }

  #answered(answer: Frame): Frame | undefined {
    if (answer.id === undefined) return answer;
    const listened = keyOf(this.#listening, answer.id);
    if (listened !== undefined) {
      if (this.isReplacing) return undefined;
      this.#listening.delete(listened);
      return answer;
    }
    const key = keyOf(this.#requests, answer.id);
    const request = key === undefined ? undefined : this.#requests.get(key);
    if (key === undefined || request === undefined) return answer;
    this.#requests.delete(key);
    if (answer.kind === 'result') this.#succeeded(request, answer);
    return answer;
  }

  #succeeded({ method, repeatable }: OpenRequest, answer: Frame): void {
    if (method === INITIALIZE || method === DISCOVER) this.capable(answer);
    if (method !== INITIALIZE) this.#hasModernAnswer = true;
    if (repeatable !== undefined && isStanding(method)) this.session.succeeded(repeatable.frame, answer);
  }

  /** Notes the capabilities in the answer to a handshake. Returns true if they are others than before. */
  capable(answer: Frame): boolean {
    const before = this.#capabilities;
    this.#capabilities = asFields(readPayload(answer)?.capabilities) ?? {};
    return before !== undefined && JSON.stringify(before) !== JSON.stringify(this.#capabilities);
  }

  /**
   * A client may still be about to answer a question of an earlier process. The ids of later processes are made
   * different from all others, so that no answer reaches a process that has not asked for it.
   */
  #asked(question: Frame): Frame {
    const { id } = question;
    if (id === undefined) return question;
    const shown = this.#processes === 1 ? id : `mcp-portage-${this.#processes}-${JSON.stringify(id)}`;
    this.#questions.set(shown, id);
    return shown === id ? question : withId(question, shown);
  }

  #told(notification: Frame): Frame | undefined {
    if (notification.method === LISTEN_ACKNOWLEDGED) {
      const id = asFields(readField(notification, '_meta'))?.[META_SUBSCRIPTION_ID];
      const key = isId(id) ? keyOf(this.#reopened, id) : undefined;
      if (key === undefined) return notification;
      this.#reopened.delete(key);
      return undefined;
    }
    const withdrawn = canceledBy(notification);
    if (withdrawn === undefined) return notification;
    const listened = keyOf(this.#listening, withdrawn);
    if (listened !== undefined) {
      if (this.isReplacing) return undefined;
      this.#listening.delete(listened);
      return notification;
    }
    for (const [shown, own] of this.#questions) {
      if (own !== withdrawn) continue;
      this.#questions.delete(shown);
      return shown === own ? notification : notificationFrame(CANCELED, { requestId: shown });
    }
    return notification;
  }

  // ---- from process to process

  /** The process has ended, or is about to end and is not listened to anymore. */
  processEnded(): LeftOver {
    const requests = [...this.#requests];
    const questions = [...this.#questions.keys()];
    this.#requests.clear();
    this.#questions.clear();
    this.#reopened.clear();
    this.#processes += 1;
    return {
      repeatable: requests.flatMap(([, { repeatable }]) => (repeatable === undefined ? [] : [repeatable])),
      lost: requests.flatMap(([id, { repeatable }]) => (repeatable === undefined ? [id] : [])),
      questions,
    };
  }

  /** Returns the subscriptions, which the next process gets from here on. */
  reopen(): readonly ClientMessage[] {
    for (const id of this.#listening.keys()) this.#reopened.add(id);
    return [...this.#listening.values()];
  }

  get listening(): readonly Listening[] {
    return [...this.#listening].flatMap(([id, { frame }]) => {
      const filter = readListenFilter(frame);
      return filter === undefined ? [] : [{ id, filter }];
    });
  }
}

/** Returns the id of the request that the notification cancels; undefined for any other notification. */
export function canceledBy(frame: Frame): JsonRpcId | undefined {
  if (frame.method !== CANCELED) return undefined;
  const id = readField(frame, 'requestId');
  return isId(id) ? id : undefined;
}

function isId(value: unknown): value is JsonRpcId {
  return typeof value === 'string' || typeof value === 'number';
}

/** Finds an id as it was sent, since some peers return it in the other JSON type. */
function keyOf(ids: { has(id: JsonRpcId): boolean }, id: JsonRpcId): JsonRpcId | undefined {
  if (ids.has(id)) return id;
  const other = idOfOtherType(id);
  return other !== undefined && ids.has(other) ? other : undefined;
}
