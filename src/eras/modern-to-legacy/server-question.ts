/** Requests of a legacy server as questions to a modern client. */
import { findProgressToken } from '../../mcp/classify/correlators.ts';
import { toInputRequest } from '../../mcp/translate/input-requests.ts';
import { rewriteProgress } from '../../mcp/translate/rewrite.ts';
import { LIST_ROOTS, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import type { RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../mcp/vocabulary/rpc-codes.ts';
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import { legacyAnswer, refusedAnswer } from './legacy-answers.ts';
import type { InputQuestion } from './open-questions.ts';
import type { RootsQuestion } from './roots-questions.ts';

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

/** One that came before there was a call. */
export function rootsQuestion(roots: RootsQuestion): InputQuestion {
  return {
    method: LIST_ROOTS,
    request: toInputRequest(roots.question),
    askedBytes: roots.question.bytes.length,
    answer: (response) => roots.answer(response),
    refuse: () => roots.refuse({ code: INTERNAL_ERROR, message: 'the client did not answer' }),
    keepAlive: undefined,
  };
}
