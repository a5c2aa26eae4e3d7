import type { Clock } from '../../../deps.ts';
import { findCanceledId, findProgressToken, rewriteProgress } from '../../../mcp/classify/correlators.ts';
import { readInputResponses } from '../../../mcp/classify/input-responses.ts';
import { inputKey, toInputRequest } from '../../../mcp/translate/input-requests.ts';
import { LIST_ROOTS, PROGRESS } from '../../../mcp/vocabulary/methods.ts';
import type { RevisionFeatures } from '../../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../../mcp/vocabulary/rpc-codes.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { notificationFrame } from '../../../wire/write-message.ts';
import { MAX_ASKED_AT_ONCE } from '../../asking-limits.ts';
import { legacyAnswer, refusedAnswer } from '../call-messages.ts';
import type { RootsQuestion } from './roots-questions.ts';

/** Servers give up on their own questions, the official SDKs after 60 s; progress keeps them waiting. */
export const KEEP_ALIVE_MS = 20_000;

/** A question of the server to the client while it works on a call. */
export interface InputQuestion {
  readonly method: string;
  /** `{"method":…,"params":…}` as the client gets it. */
  readonly request: Buffer;
  /** The size of the message the question came in, which is kept for its answer. */
  readonly askedBytes: number;
  /** The request of the server that it came in, where it belongs to a call that the server has. */
  readonly source: Frame | undefined;
  /** Passes an answer on: JSON text of the right shape, part of the retry that brought it. */
  answer(response: Buffer): void;
  /** Tells the asker that nobody will answer. */
  refuse(): void;
  /** Tells the asker that somebody still thinks about it. `count` grows. Undefined: it does not want to hear. */
  readonly keepAlive: ((count: number) => void) | undefined;
}

interface OpenQuestion {
  readonly question: InputQuestion;
  /** The client knows of it. */
  isTold: boolean;
}

/** A question by the key that the client answers it with. */
export interface KeyedQuestion {
  readonly key: string;
  readonly question: InputQuestion;
}

/**
 * The questions of the server in one call that are not answered yet. While a question waits, its server gets progress if
 * it asked for any.
 */
export class OpenQuestions {
  readonly #clock: Clock;
  readonly #hold: (bytes: number) => boolean;
  readonly #byKey = new Map<string, OpenQuestion>();
  #bytes = 0;
  #lastKey = 0;
  #keepAlives = 0;
  #stopKeepAlive: (() => void) | undefined;

  /** `hold` is told how many bytes they hold from now on. False: that exceeds the limit, and they hold what they held. */
  constructor(clock: Clock, hold: (bytes: number) => boolean) {
    this.#clock = clock;
    this.#hold = hold;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** False: there are too many, or they hold too much; this one is none of them. */
  add(question: InputQuestion): boolean {
    const key = inputKey(question.method, this.#lastKey + 1);
    if (!this.restore({ key, question })) return false;
    this.#lastKey += 1;
    return true;
  }

  /** Adds one that had its key elsewhere. `skipKeys` follows. False: as for `add`. */
  restore({ key, question }: KeyedQuestion): boolean {
    const bytes = this.#bytes + bytesOf(question);
    if (this.#byKey.size >= MAX_ASKED_AT_ONCE || !this.#hold(bytes)) return false;
    this.#bytes = bytes;
    this.#byKey.set(key, { question, isTold: false });
    this.#keepAlive();
    return true;
  }

  /** The number in the key of the latest question. */
  get lastKey(): number {
    return this.#lastKey;
  }

  /** Keys up to this one were used elsewhere. */
  skipKeys(lastKey: number): void {
    this.#lastKey = lastKey;
  }

  all(): readonly KeyedQuestion[] {
    return [...this.#byKey].map(([key, { question }]) => ({ key, question }));
  }

  /** The server does not want to know it anymore. */
  remove(question: InputQuestion): void {
    for (const [key, open] of this.#byKey) if (open.question === question) this.#drop(key, question);
    this.#keepAlive();
  }

  /** Returns the questions by the keys of their answers. From now on the client knows all of them. */
  tell(): ReadonlyMap<string, Buffer> {
    const requests = new Map<string, Buffer>();
    for (const [key, open] of this.#byKey) {
      open.isTold = true;
      requests.set(key, open.question.request);
    }
    return requests;
  }

  /** Passes on what a retry answers of what the client was told. False: some that were open before still are. */
  answer(retry: Frame): boolean {
    const open = [...this.#byKey];
    const told = open.filter(([, { isTold }]) => isTold).map(([key, { question }]) => [key, question.method] as const);
    const { answers } = readInputResponses(retry, new Map(told));
    for (const [key, { question }] of open) {
      const response = answers.get(key);
      // Gone first: whatever the answer sets off finds it answered. And not if an earlier answer ended the call.
      if (response !== undefined && this.#drop(key, question)) question.answer(response);
    }
    this.#keepAlive();
    return !open.some(([key]) => this.#byKey.has(key));
  }

  /** False: it was gone before. */
  #drop(key: string, question: InputQuestion): boolean {
    if (!this.#byKey.delete(key)) return false;
    this.#bytes -= bytesOf(question);
    this.#hold(this.#bytes);
    return true;
  }

  /** All of them; none is left. */
  takeAll(): readonly InputQuestion[] {
    if (this.#byKey.size === 0) return [];
    const questions = [...this.#byKey.values()].map(({ question }) => question);
    this.#byKey.clear();
    this.#bytes = 0;
    this.#hold(0);
    this.#keepAlive();
    return questions;
  }

  /** Runs the timer as long as there is somebody to tell. */
  #keepAlive(): void {
    const isWanted = [...this.#byKey.values()].some(({ question }) => question.keepAlive !== undefined);
    if (isWanted === (this.#stopKeepAlive !== undefined)) return;
    this.#stopKeepAlive?.();
    this.#stopKeepAlive = isWanted ? this.#clock.every(KEEP_ALIVE_MS, () => this.#sayStillThinking()) : undefined;
  }

  #sayStillThinking(): void {
    this.#keepAlives += 1;
    for (const { question } of this.#byKey.values()) question.keepAlive?.(this.#keepAlives);
  }
}

/**
 * The bytes of one question: what was asked, how the client is told, and the answer in which it was told, which it may
 * ask for once more.
 */
function bytesOf({ askedBytes, request }: InputQuestion): number {
  return askedBytes + 2 * request.length;
}

/** Asks the client what the server wants to know, and takes questions back. */
export interface ClientAsker {
  askClient(question: InputQuestion): void;
  /** The server does not want to know it anymore. */
  questionWithdrawn(question: InputQuestion): void;
}

export interface CallQuestionsOptions {
  readonly asker: ClientAsker;
  /** To the server. */
  readonly send: (frame: Frame) => void;
}

/** The requests of a server that belong to one call, by their id, until they are answered or withdrawn. */
export class CallQuestions {
  readonly #options: CallQuestionsOptions;
  readonly #byId = new Map<JsonRpcId, InputQuestion>();

  constructor(options: CallQuestionsOptions) {
    this.#options = options;
  }

  asked(frame: Frame, features: RevisionFeatures): void {
    if (frame.id !== undefined) this.#options.asker.askClient(this.open(frame, frame.id, features));
  }

  /** A question of the server, of which the client is not told here. */
  open(frame: Frame, id: JsonRpcId, features: RevisionFeatures): InputQuestion {
    const send = (message: Frame): void => {
      if (message.isResponse) this.#byId.delete(id);
      this.#options.send(message);
    };
    const question = serverQuestion(frame, { features, send });
    this.#byId.set(id, question);
    return question;
  }

  withdrawn(canceled: Frame): void {
    const id = findCanceledId(canceled)?.value;
    const question = id === undefined ? undefined : this.#byId.get(id);
    if (id === undefined || question === undefined) return;
    this.#byId.delete(id);
    this.#options.asker.questionWithdrawn(question);
  }

  /** The call is over: nobody wants to know anything more. */
  clear(): void {
    this.#byId.clear();
  }
}

// ---- Requests of a legacy server as questions to a modern client.

export interface QuestionOptions {
  readonly features: RevisionFeatures;
  /** To the server. */
  readonly send: (frame: Frame) => void;
}

export function serverQuestion(question: Frame, { features, send }: QuestionOptions): InputQuestion {
  const token = findProgressToken(question);
  const progressToken = token && question.bytes.subarray(token.start, token.end);
  return {
    method: question.method ?? '',
    request: toInputRequest(question),
    askedBytes: question.bytes.length,
    source: question,
    answer: (response) => send(legacyAnswer({ question, response, features })),
    refuse: () => send(refusedAnswer(question)),
    keepAlive: progressToken && ((count) => send(progressFrame(progressToken, count))),
  };
}

/** `token` as its owner wrote it. */
function progressFrame(token: Buffer, progress: number): Frame {
  const frame = notificationFrame(PROGRESS, { progressToken: 0, progress });
  return rewriteProgress(frame, token) ?? frame;
}

/** Makes a question of a request for roots that came before there was a call. */
export function rootsQuestion(roots: RootsQuestion): InputQuestion {
  return {
    method: LIST_ROOTS,
    request: toInputRequest(roots.question),
    askedBytes: roots.question.bytes.length,
    source: undefined,
    answer: (response) => roots.answer(response),
    refuse: () => roots.refuse({ code: INTERNAL_ERROR, message: 'the client did not answer' }),
    keepAlive: undefined,
  };
}
