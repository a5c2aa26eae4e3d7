/** Requests of a legacy server as questions to a modern client. */
import { findProgressToken } from '../../mcp/correlators.ts';
import { toInputRequest } from '../../mcp/input-requests.ts';
import { LIST_ROOTS, PROGRESS } from '../../mcp/methods.ts';
import type { RevisionFeatures } from '../../mcp/revision-features.ts';
import { INTERNAL_ERROR } from '../../mcp/rpc-codes.ts';
import type { RootsQuestion } from '../../relay/roots-questions.ts';
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import { legacyAnswer, refusedAnswer } from './legacy-answers.ts';
import type { InputQuestion } from './open-questions.ts';

export interface QuestionOptions {
  readonly features: RevisionFeatures;
  /** To the server. */
  readonly send: (frame: Frame) => void;
}

export function serverQuestion(question: Frame, { features, send }: QuestionOptions): InputQuestion {
  const progressToken = findProgressToken(question)?.value;
  return {
    method: question.method ?? '',
    request: toInputRequest(question),
    answer: (response) => send(legacyAnswer({ question, response, features })),
    refuse: () => send(refusedAnswer(question)),
    keepAlive:
      progressToken === undefined
        ? undefined
        : (progress) => send(notificationFrame(PROGRESS, { progressToken, progress })),
  };
}

/** One that came before there was a call. */
export function rootsQuestion(roots: RootsQuestion): InputQuestion {
  return {
    method: LIST_ROOTS,
    request: toInputRequest(roots.question),
    answer: (response) => roots.answer(response),
    refuse: () => roots.refuse({ code: INTERNAL_ERROR, message: 'the client did not answer' }),
    keepAlive: undefined,
  };
}
