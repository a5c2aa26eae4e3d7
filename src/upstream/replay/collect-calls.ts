import {
  findCanceledId,
  findProgressOf,
  findProgressToken,
  findSubscriptionId,
} from '../../mcp/classify/correlators.ts';
import { resultTypeOf } from '../../mcp/classify/input-required.ts';
import { parseDiscovery } from '../../mcp/vocabulary/discover.ts';
import {
  CANCELED,
  DISCOVER,
  INITIALIZE,
  LISTEN,
  LISTEN_ACKNOWLEDGED,
  mayAsk,
  PING,
  PROGRESS,
} from '../../mcp/vocabulary/methods.ts';
import { encodeJson, readField, readMembers } from '../../mcp/vocabulary/payload.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { HIDDEN, type MessageFacts } from '../../recording/recorded-message.ts';
import { editFrame, type Frame, type JsonRpcId } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { keyOfParameters } from './parameters.ts';
import { idKey, type RecordedAnswer, type RecordedCall, type RecordedStep, stateOf } from './recorded-call.ts';

/** The facts of a line that the calls are made from. */
export type LineFacts = Pick<MessageFacts, 'at' | 'seq' | 'direction' | 'session' | 'era' | 'call' | 'hidden' | 'cut'>;

/** The calls of a recording, and the answers to its handshakes. */
export interface CollectedCalls {
  /** Each call at the place that its ordinal says. */
  readonly calls: readonly RecordedCall[];
  /** The calls that begin something. The others are rounds of them. */
  readonly first: readonly RecordedCall[];
  /** The eras that the server was seen to speak. */
  readonly eras: ReadonlySet<Era>;
  readonly hiddenValues: number;
}

/** A call while the lines after its request are read. */
interface Draft extends Omit<RecordedCall, 'steps' | 'answer' | 'after' | 'next'> {
  readonly callNumber: number | undefined;
  readonly token: JsonRpcId | undefined;
  readonly steps: RecordedStep[];
  readonly after: RecordedStep[];
  answer: RecordedAnswer;
  next: Draft | undefined;
  /** Time of its latest message. */
  atMs: number;
}

/** A question of the server that has no answer yet. */
interface OpenQuestion {
  readonly draft: Draft;
  readonly index: number;
}

/** A connection to the recorded server, as far as its lines were read. */
interface RecordedConnection {
  readonly open: Map<string, Draft>;
  readonly questions: Map<string, OpenQuestion>;
  /** The call after whose answer the server speaks outside of calls. Undefined before the first answer. */
  latest: Draft | undefined;
}

/**
 * Limit of calls of one connection, and of calls that require input, that are open at a time: as many as a bridge allows
 * by default. The message of a call beyond it may be put to another, as each message is compared with all that are open.
 */
const MAX_OPEN = 4096;

/** Puts the messages of the server's side together to calls. */
export class CallCollector {
  readonly #drafts: Draft[] = [];
  readonly #first: Draft[] = [];
  readonly #eras = new Set<Era>();
  /** Calls whose answers require input, and have not been repeated. */
  #requiring: Draft[] = [];
  #connections = new Map<string | undefined, RecordedConnection>();
  #seq = 0;
  #hiddenValues = 0;

  /** Takes the next line. A message of the bridge's own that says nothing about the server is skipped. */
  add(facts: LineFacts, frame: Frame): void {
    // Each run of a bridge counts its lines from the beginning, and uses the ids of the run before it again.
    if (facts.seq <= this.#seq) this.#connections = new Map();
    this.#seq = facts.seq;
    this.#hiddenValues += facts.hidden ?? 0;
    const connection = this.#connectionOf(facts.session);
    if (facts.direction === 'out') this.#addSent(facts, frame, connection);
    else this.#addReceived(facts, frame, connection);
  }

  finish(): CollectedCalls {
    for (const draft of this.#drafts) {
      const { answer } = draft;
      if (answer.kind === 'whole' && requiresInput(draft)) {
        draft.answer = { ...answer, frame: withState(answer.frame, stateOf(draft.next)) };
      }
    }
    return { calls: this.#drafts, first: this.#first, eras: this.#eras, hiddenValues: this.#hiddenValues };
  }

  #connectionOf(session: string | undefined): RecordedConnection {
    const known = this.#connections.get(session);
    if (known !== undefined) return known;
    const connection: RecordedConnection = { open: new Map(), questions: new Map(), latest: undefined };
    this.#connections.set(session, connection);
    return connection;
  }

  // ---- from the bridge to the server

  #addSent(facts: LineFacts, frame: Frame, connection: RecordedConnection): void {
    if (frame.kind === 'request') return this.#begin(facts, frame, connection);
    if (!frame.isResponse) return;
    const question = connection.questions.get(idKey(frame.id));
    if (question === undefined) return;
    connection.questions.delete(idKey(frame.id));
    const { draft, index } = question;
    const step = draft.steps[index];
    if (step !== undefined) draft.steps[index] = { ...step, kind: 'question' };
    draft.atMs = Date.parse(facts.at);
  }

  #begin({ at, era, call, hidden, cut }: LineFacts, request: Frame, connection: RecordedConnection): void {
    const { method = '' } = request;
    if (method === PING) return;
    const draft: Draft = {
      era,
      method,
      request,
      key: keyOfParameters(request, era),
      parameters: cut === true ? 'cut' : hidden === undefined ? 'whole' : 'hidden',
      callNumber: call,
      token: findProgressToken(request)?.value,
      steps: [],
      after: [],
      answer: { kind: 'missing' },
      next: undefined,
      atMs: Date.parse(at),
      ordinal: this.#drafts.length,
    };
    this.#drafts.push(draft);
    connection.open.set(idKey(request.id), draft);
    if (connection.open.size > MAX_OPEN) dropFirst(connection.open);
    const before = this.#findRoundBefore(draft);
    if (before === undefined) this.#first.push(draft);
    else {
      before.next = draft;
      this.#requiring = this.#requiring.filter((other) => other !== before);
    }
  }

  /**
   * Finds the call whose answer required the input that this request brings: by the state that the server gave it, else
   * by the number of the call, else the first one that asked the same.
   */
  #findRoundBefore(draft: Draft): Draft | undefined {
    const { request, era, method, key, callNumber } = draft;
    if (this.#requiring.length === 0) return undefined;
    const state = readField(request, 'requestState');
    if (state === undefined && readField(request, 'inputResponses') === undefined) return undefined;
    const alike = this.#requiring.filter((other) => other.era === era && other.method === method && other.key === key);
    const isShown = state !== undefined && state !== HIDDEN;
    return (
      alike.find(({ answer }) => isShown && answer.kind === 'whole' && stateIn(answer.frame) === state) ??
      alike.find((other) => callNumber !== undefined && other.callNumber === callNumber) ??
      alike[0]
    );
  }

  // ---- from the server to the bridge

  #addReceived(facts: LineFacts, frame: Frame, connection: RecordedConnection): void {
    switch (frame.kind) {
      case 'result':
      case 'error':
        return this.#answer(facts, frame, connection);
      case 'request':
        if (frame.method !== PING) this.#ask(facts, frame, connection);
        return;
      case 'notification':
        return this.#notify(facts, frame, connection);
    }
  }

  #answer({ at, cut }: LineFacts, frame: Frame, connection: RecordedConnection): void {
    const draft = connection.open.get(idKey(frame.id));
    if (draft === undefined) return;
    connection.open.delete(idKey(frame.id));
    draft.answer = cut === true ? { kind: 'cut' } : { kind: 'whole', frame, delayMs: pass(draft, at) };
    connection.latest = draft;
    if (showsEra(draft, frame)) this.#eras.add(draft.era);
    if (!requiresInput(draft)) return;
    this.#requiring.push(draft);
    if (this.#requiring.length > MAX_OPEN) this.#requiring.shift();
  }

  #ask({ at, call }: LineFacts, frame: Frame, connection: RecordedConnection): void {
    const draft = findByNumber(connection, call) ?? findAsking(connection);
    if (draft === undefined) {
      const { latest } = connection;
      latest?.after.push({ kind: 'unanswered', frame, delayMs: pass(latest, at) });
      return;
    }
    connection.questions.set(idKey(frame.id), { draft, index: draft.steps.length });
    draft.steps.push({ kind: 'unanswered', frame, delayMs: pass(draft, at) });
  }

  #notify({ at, call }: LineFacts, frame: Frame, connection: RecordedConnection): void {
    const draft = this.#callOf(frame, call, connection);
    if (draft !== undefined) {
      draft.steps.push({ kind: 'notification', frame, delayMs: pass(draft, at) });
      if (frame.method === LISTEN_ACKNOWLEDGED) connection.latest = draft;
      return;
    }
    const { latest } = connection;
    latest?.after.push({ kind: 'notification', frame, delayMs: pass(latest, at) });
  }

  /**
   * Returns the call that a notification belongs to. A change belongs to none, but came after the latest answer: on the
   * stream of a subscription as well, since the calls before it have most likely caused it.
   */
  #callOf(frame: Frame, call: number | undefined, connection: RecordedConnection): Draft | undefined {
    const drafts = [...connection.open.values()];
    if (frame.method === PROGRESS) {
      const token = findProgressOf(frame)?.value;
      const draft = token === undefined ? undefined : drafts.findLast((other) => other.token === token);
      if (draft !== undefined) return draft;
    }
    if (frame.method === LISTEN_ACKNOWLEDGED) {
      const id = findSubscriptionId(frame)?.value;
      return id === undefined ? drafts.find(isListening) : connection.open.get(idKey(id));
    }
    if (frame.method === CANCELED) {
      const id = findCanceledId(frame)?.value;
      return id === undefined ? undefined : connection.questions.get(idKey(id))?.draft;
    }
    const numbered = findByNumber(connection, call);
    if (numbered !== undefined) return isListening(numbered) ? undefined : numbered;
    if (call !== undefined || frame.method === undefined || isChange(frame.method)) return undefined;
    const [only, ...others] = drafts.filter((draft) => !isListening(draft));
    return others.length === 0 ? only : undefined;
  }
}

function dropFirst(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}

/** Returns the time since the latest message of the call, and notes that of this one. Clocks may be set back. */
function pass(draft: Draft, at: string): number {
  const atMs = Date.parse(at);
  const delayMs = Math.max(0, atMs - draft.atMs);
  draft.atMs = atMs;
  return delayMs;
}

function findByNumber({ open }: RecordedConnection, call: number | undefined): Draft | undefined {
  return call === undefined ? undefined : [...open.values()].findLast(({ callNumber }) => callNumber === call);
}

/** The call in which a server most likely asks something: the latest one in which it may. */
function findAsking({ open }: RecordedConnection): Draft | undefined {
  return [...open.values()].findLast((draft) => mayAsk(draft.method) && !isListening(draft));
}

function isListening({ method }: Draft): boolean {
  return method === LISTEN;
}

function isChange(method: string): boolean {
  return method.endsWith('/list_changed') || method.endsWith('/updated');
}

/** Returns true if the answer is that of a server of this era, not that of a server that was only asked for its era. */
function showsEra({ method }: Draft, answer: Frame): boolean {
  if (method === INITIALIZE) return answer.kind === 'result';
  if (method === DISCOVER) return answer.kind === 'result' && parseDiscovery(readMembers(answer)?.result) !== undefined;
  return true;
}

function requiresInput({ era, answer }: Draft): boolean {
  return era === 'modern' && answer.kind === 'whole' && resultTypeOf(answer.frame) === 'input_required';
}

function stateIn(answer: Frame): unknown {
  return readField(answer, 'requestState');
}

function withState(answer: Frame, state: string): Frame {
  const result = ObjectEditor.readIn(answer, answer.payloadStart, ['requestState']);
  result?.set('requestState', encodeJson(state));
  return editFrame(answer, result?.edits() ?? []);
}
