import { asFields, type Fields } from '../../../mcp/vocabulary/payload.ts';
import type { CallPositions, ResumableCall } from '../../../relay/sessions/resumable-call.ts';
import { withoutArguments } from '../../../relay/sessions/resumable-call.ts';
import { SessionState } from '../../../relay/sessions/session-state.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import { type Frame, type JsonRpcId, withId } from '../../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../../wire/read-message.ts';
import type { KeyedQuestion, OpenQuestions } from './questions.ts';

/** The parts that another bridge needs to wait for the answer to a call that the server has. */
export interface Continuation {
  /** The session with the server. */
  readonly session: SessionState;
  readonly resumable: ResumableCall;
  /** The server's answer to `initialize`. */
  readonly server: InitializeResult;
  /** The id under which the server has asked this; undefined: it does not want to know it anymore. */
  serverIdOf(question: Frame): JsonRpcId | undefined;
}

/** A call whose client is being asked something, as another bridge finds it. */
export interface WaitingCall extends Omit<Continuation, 'serverIdOf'> {
  readonly round: number;
  /** The time that was left to it. */
  readonly leftMs: number;
  /** The number in the key of the latest question. */
  readonly lastKey: number;
  /** The questions, by the keys of their answers. Their ids are those of the server. */
  readonly questions: readonly (readonly [key: string, question: Frame])[];
}

export interface WaitingCallParts extends Pick<WaitingCall, 'round' | 'leftMs'> {
  readonly continuation: Continuation;
  readonly questions: OpenQuestions;
}

interface StoredCall {
  readonly round: number;
  readonly leftMs: number;
  readonly lastKey: number;
  readonly session: string;
  readonly request: string;
  readonly lastEventId: string;
  readonly server: Fields;
  readonly questions: readonly (readonly [string, string])[];
}

/** Undefined: something is asked that only this bridge can pass an answer of on. */
export function encodeWaitingCall({ round, leftMs, continuation, questions }: WaitingCallParts): string | undefined {
  const { session, resumable, server, serverIdOf } = continuation;
  const encode = ({ key, question: { source } }: KeyedQuestion): readonly [string, string] | undefined => {
    const id = source && serverIdOf(source);
    return source && id !== undefined ? [key, withId(source, id).bytes.toString()] : undefined;
  };
  const encoded = questions.all().map(encode);
  const known = encoded.filter((question) => question !== undefined);
  if (known.length < encoded.length) return undefined;
  const { protocolVersion, capabilities, serverInfo } = server;
  const stored: StoredCall = {
    round,
    leftMs,
    lastKey: questions.lastKey,
    session: JSON.stringify(session),
    request: withoutArguments(resumable.request).bytes.toString(),
    lastEventId: resumable.lastEventId,
    server: { protocolVersion, capabilities, serverInfo },
    questions: known,
  };
  return JSON.stringify(stored);
}

/** Throws a BridgeError where its session was stored by another version. */
export function decodeWaitingCall(text: string): WaitingCall | undefined {
  const stored = JSON.parse(text) as StoredCall; // sealed by a replica
  const { round, leftMs, lastKey, lastEventId, server } = stored;
  const request = readFrame(stored.request);
  const questions = stored.questions.flatMap(([key, bytes]) => {
    const question = readFrame(bytes);
    return question === undefined ? [] : [[key, question] as const];
  });
  if (request === undefined || questions.length < stored.questions.length) return undefined;
  return {
    round,
    leftMs,
    lastKey,
    session: SessionState.from(stored.session),
    resumable: { request, lastEventId },
    server: { ...server, capabilities: asFields(server.capabilities) ?? {} },
    questions,
  };
}

function readFrame(text: string): Frame | undefined {
  const read = readMessage(Buffer.from(text), SERVER_LIMITS);
  return read.kind === 'message' ? read.frame : undefined;
}

/** The positions of the calls of a session in the streams of their server. */
export class CallProgress implements CallPositions {
  readonly #calls = new Map<JsonRpcId, ResumableCall>();

  moved(request: Frame, lastEventId: string): void {
    this.#calls.set(request.id as JsonRpcId, { request, lastEventId });
  }

  over({ id }: Frame): void {
    this.#calls.delete(id as JsonRpcId);
  }

  isResumable(id: JsonRpcId): boolean {
    return this.#calls.has(id);
  }

  /** Undefined: the server has not said yet that its answer can be waited for elsewhere, or has answered. */
  find(id: JsonRpcId): ResumableCall | undefined {
    return this.#calls.get(id);
  }
}
