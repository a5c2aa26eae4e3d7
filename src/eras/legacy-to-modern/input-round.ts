import { BridgeError } from '../../errors.ts';
import { type InputRequest, isUrlMode } from '../../mcp/classify/input-required.ts';
import { type AskedInput, toInputResponse } from '../../mcp/classify/input-responses.ts';
import { toLegacyInput } from '../../mcp/translate/downgrade-inputs.ts';
import { CANCELED } from '../../mcp/vocabulary/methods.ts';
import { readFields } from '../../mcp/vocabulary/payload.ts';
import type { Call } from '../../relay/call.ts';
import { editFrame, type Frame, withParams } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { notificationFrame, requestFrame } from '../../wire/write-message.ts';
import { MAX_ASKED_AT_ONCE } from '../asking-limits.ts';
import type { CallAtModernServerHost } from './call-host.ts';
import type { PendingInput, PendingInputOwner } from './pending-inputs.ts';

/** Time for all answers of one round. A person may be thinking, and progress of the client starts the time again. */
export const ROUND_TIMEOUT_MS = 600_000;

export interface InputRoundOptions {
  readonly host: CallAtModernServerHost;
  /** The client's call. Questions are sent on its lane. */
  readonly call: Call;
  /** The round ends at this time at the latest. */
  readonly untilMs: number;
  /** Sets the number of bytes that are held for the round. Returns false if that exceeds the limit. */
  readonly hold: (bytes: number) => boolean;
  /** Called with the JSON texts of the answers, by the server's keys. */
  readonly onAnswered: (answers: ReadonlyMap<string, Buffer>) => void;
  readonly onFailed: (reason: BridgeError) => void;
}

interface Waiting extends AskedInput {
  /** The server's key of the question. */
  readonly key: string;
}

/**
 * Asks the client everything that one `input_required` result requires, by real requests at the same time. The round
 * ends with all answers, or with the first failure, because a server cannot be told that its client failed to answer.
 */
export class InputRound implements PendingInputOwner {
  readonly #options: InputRoundOptions;
  /** Questions that have no answer yet. */
  readonly #waiting = new Map<PendingInput, Waiting>();
  readonly #answers = new Map<string, Buffer>();
  /** Bytes of the keys and of the answers so far. */
  #bytes = 0;
  #isOver = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: InputRoundOptions) {
    this.#options = options;
  }

  start(requests: ReadonlyMap<string, InputRequest>): void {
    const { host, call } = this.#options;
    const { pendingInputs, profile, randomId } = host;
    const questions = new Map<string, InputRequest>();
    const [first = ''] = requests.keys();
    if (requests.size > MAX_ASKED_AT_ONCE) return this.#fail(first, TOO_MANY);
    for (const key of requests.keys()) this.#bytes += key.length;
    if (!this.#options.hold(this.#bytes)) return this.#fail(first, NO_CAPACITY);
    // All questions are translated before the first is asked, so that none is asked in vain.
    for (const [key, request] of requests) {
      const legacy = toLegacyInput(request, { clientRevision: profile.revision.id, elicitationId: randomId() });
      if ('fault' in legacy) return this.#fail(key, legacy.fault);
      questions.set(key, { method: request.method, params: legacy.params });
    }
    const asked = [...questions].map(([key, question]) => {
      const input = pendingInputs.open(question.method, this);
      this.#waiting.set(input, { key, method: question.method, isUrlMode: isUrlMode(question) });
      return [input, question] as const;
    });
    this.progressed();
    for (const [input, { method, params }] of asked) {
      // The client may have refused one question before the next is asked.
      if (this.#isOver) return;
      const question = requestFrame(input.id, method);
      const whole = params === undefined ? question : withParams(question, params);
      host.ask(input, withProgressToken(whole, input.id), call);
    }
  }

  progressed(): void {
    const { host, untilMs } = this.#options;
    this.#stopTimer?.();
    const remainingMs = Math.max(0, untilMs - host.clock.now());
    this.#stopTimer = host.clock.after(Math.min(ROUND_TIMEOUT_MS, remainingMs), () => this.#timedOut());
  }

  answered(input: PendingInput, answer: Frame): void {
    const asked = this.#waiting.get(input);
    if (asked === undefined) return;
    this.#waiting.delete(input);
    const { key } = asked;
    if (answer.kind === 'error') return this.#fail(key, `the client answered with ${describeError(answer)}`);
    const response = toInputResponse(asked, answer);
    if (response === undefined) return this.#fail(key, `the client's answer is none to ${input.method}`);
    this.#bytes += answer.bytes.length;
    if (!this.#options.hold(this.#bytes)) return this.#fail(key, NO_CAPACITY);
    this.#answers.set(key, response);
    if (this.#waiting.size > 0) return;
    this.#close();
    this.#options.onAnswered(this.#answers);
  }

  #fail(key: string, cause: string): void {
    this.cancel('another question of the same call failed');
    // The server's key shows which question failed.
    const shown = JSON.stringify(key.slice(0, MAX_SHOWN_KEY));
    const message = `The server needed input (${shown}) that it did not get: ${cause}.`;
    this.#options.onFailed(new BridgeError('ERR_CLIENT_INPUT', message));
  }

  #timedOut(): void {
    this.cancel('nobody has answered');
    this.#options.onFailed(NO_ANSWER);
  }

  #close(): void {
    this.#isOver = true;
    this.#stopTimer?.();
  }

  /** Withdraws the unanswered questions. No callback is called. May be called twice. */
  cancel(reason: string): void {
    this.#close();
    const { pendingInputs, listener } = this.#options.host;
    const waiting = [...this.#waiting.keys()];
    this.#waiting.clear();
    for (const { id } of waiting) {
      pendingInputs.take(id);
      listener.fromServer(notificationFrame(CANCELED, { requestId: id, reason }));
    }
  }
}

const MAX_SHOWN_KEY = 200;
const TOO_MANY = `it asked for more than ${MAX_ASKED_AT_ONCE} things at once`;
const NO_CAPACITY =
  'the memory for calls that wait for the answers of their clients is used up; give shorter answers, or call again later';

const NO_ANSWER = new BridgeError(
  'ERR_CLIENT_INPUT',
  'The server needed input that the client did not give in time; repeat the call and answer the questions.',
);

function describeError(answer: Frame): string {
  const { code, message } = readFields(answer, ['code', 'message']);
  const text = typeof message === 'string' ? `: ${message}` : '';
  return `error ${typeof code === 'number' ? code : 'without a code'}${text}`;
}

/**
 * Returns the request with a token for the client's progress. A token of the server is replaced, because the server has
 * no open request that progress could refer to. [spec 2025-11-25 basic/utilities/progress]
 */
export function withProgressToken(request: Frame, token: number): Frame {
  const { bytes, payloadStart } = request;
  const value = Buffer.from(String(token));
  const whole = Buffer.from(`{"progressToken":${token}}`);
  const params = ObjectEditor.read(bytes, payloadStart, ['_meta']);
  if (params === undefined) return payloadStart === -1 ? withParams(request, inParams(whole)) : request;
  const meta = ObjectEditor.read(bytes, params.value('_meta')?.start ?? -1, ['progressToken']);
  meta?.set('progressToken', value);
  if (meta === undefined) params.set('_meta', whole);
  else params.edit('_meta', meta.edits());
  return editFrame(request, params.edits());
}

function inParams(meta: Buffer): Buffer {
  return Buffer.concat([Buffer.from('{"_meta":'), meta, Buffer.from('}')]);
}
