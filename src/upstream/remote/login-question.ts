/** Asks a client, on behalf of its server, to show its user where to log in. */
import type { UserAnswer, UserPrompt } from '../../http/client/credentials.ts';
import { withInputAnswers } from '../../mcp/classify/input-required.ts';
import { readInputResponses, readRequestState } from '../../mcp/classify/input-responses.ts';
import { readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import {
  type ClientCapabilities,
  missingCapability,
  readClientCapabilities,
} from '../../mcp/vocabulary/client-declarations.ts';
import { CANCELED, ELICIT, ELICITATION_COMPLETE, isInteractive } from '../../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../../mcp/vocabulary/payload.ts';
import { type Frame, idToken } from '../../wire/frame.ts';
import { findUnmistakable } from '../../wire/json/outline.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../wire/write-message.ts';

interface OpenQuestion {
  readonly prompt: UserPrompt;
  readonly settle: (answer: UserAnswer) => void;
}

function openQuestion(prompt: UserPrompt): OpenQuestion & { readonly answer: Promise<UserAnswer> } {
  let settle = (_: UserAnswer): void => {};
  const answer = new Promise<UserAnswer>((resolve) => {
    settle = resolve;
  });
  return { prompt, settle, answer };
}

function showsUrls(capabilities: ClientCapabilities): boolean {
  return missingCapability(capabilities, ELICIT, { mode: 'url' }) === undefined;
}

function toAnswer(action: unknown): UserAnswer {
  return action === 'accept' ? 'accepted' : 'declined';
}

/** The login question in a session, which the client answers while its call waits. One login takes place at a time. */
export class SessionQuestion {
  readonly #tell: (frame: Frame) => void;
  #open: OpenQuestion | undefined;

  /** @param tell passes a message to the client */
  constructor(tell: (frame: Frame) => void) {
    this.#tell = tell;
  }

  /**
   * Asks the client. Returns undefined if the client cannot show URLs.
   * @param initialize the client's `initialize` parameters
   * @param ask passes the question to the client, on the call that waits
   */
  ask(
    prompt: UserPrompt,
    initialize: object | undefined,
    ask: (frame: Frame) => void,
  ): Promise<UserAnswer> | undefined {
    if (initialize === undefined || !showsUrls(readClientCapabilities(initialize))) return undefined;
    const question = openQuestion(prompt);
    const { id, message, url } = prompt;
    this.#open = question;
    ask(requestFrame(id, ELICIT, { mode: 'url', elicitationId: id, url: url.href, message }));
    void prompt.over.then((end) => {
      if (this.#open === question) {
        this.#open = undefined;
        this.#tell(notificationFrame(CANCELED, { requestId: id, reason: 'the login is over' }));
      }
      if (end === 'logged-in') this.#tell(notificationFrame(ELICITATION_COMPLETE, { elicitationId: id }));
    });
    return question.answer;
  }

  /** Returns true if the response of the client is the answer to this question. */
  takes(response: Frame): boolean {
    const question = this.#open;
    if (question === undefined || response.id !== question.prompt.id) return false;
    this.#open = undefined;
    question.settle(response.kind === 'error' ? 'unshown' : toAnswer(readField(response, 'action')));
    return true;
  }
}

const KEY = 'login';

/** Result for a call that the client repeats with its answer. */
export type RepeatedCall =
  | { readonly kind: 'accepted'; readonly frame: Frame }
  | { readonly kind: 'declined'; readonly prompt: UserPrompt };

/** The login question in the result of a modern call. The client repeats the call with its user's decision. */
export class CallQuestion {
  #latest: OpenQuestion | undefined;

  /**
   * Asks the client. Returns undefined if the client cannot be asked in this call. A call that carries the state of its
   * server is not interrupted, because the client would lose that state.
   * @param end ends the call with this result in place of the server's
   */
  ask(prompt: UserPrompt, call: Frame, end: (result: Frame) => void): Promise<UserAnswer> | undefined {
    if (!isInteractive(call.method ?? '')) return undefined;
    const carries = (member: string): boolean => findUnmistakable(call, call.payloadStart, member) !== undefined;
    if (carries('requestState') || carries('inputResponses')) return undefined;
    const metadata = readRequestMetadata(call);
    if ('fault' in metadata || !showsUrls(metadata.capabilities)) return undefined;
    const question = openQuestion(prompt);
    const { id, message, url } = prompt;
    this.#latest = question;
    const asked = { method: ELICIT, params: { mode: 'url', url: url.href, message } };
    end(
      resultFrame(idToken(call), { resultType: 'input_required', inputRequests: { [KEY]: asked }, requestState: id }),
    );
    return question.answer;
  }

  /** Returns undefined if the request is not the repetition of a call that was asked the latest question. */
  findRepeated(request: Frame): RepeatedCall | undefined {
    const question = this.#latest;
    if (question === undefined || !isInteractive(request.method ?? '')) return undefined;
    if (readRequestState(request)?.text !== question.prompt.id) return undefined;
    const given = readInputResponses(request, new Map([[KEY, ELICIT]])).answers.get(KEY);
    const answer = toAnswer(given && asFields(JSON.parse(given.toString()))?.action);
    question.settle(answer);
    if (answer === 'declined') return { kind: 'declined', prompt: question.prompt };
    return { kind: 'accepted', frame: withInputAnswers(request, { responses: new Map(), requestState: undefined }) };
  }
}
