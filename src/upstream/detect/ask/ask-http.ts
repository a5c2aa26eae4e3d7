import type { BridgeError } from '../../../errors.ts';
import type { HttpHandler, ResponseHead } from '../../../http/client/http-call.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../../http/content-type.ts';
import { showUrl } from '../../../http/shown-url.ts';
import type { ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { SseDecoder } from '../../../wire/sse-decode.ts';
import { askOnce, type HttpTarget } from './ask-once.ts';
import { describeAttempt, describeStatus } from './describe-outcome.ts';
import { findResponse, outcomeOfError, outcomeOfResponse, statusOf } from './http-outcome.ts';

export interface HttpQuestion {
  /** A notification is answered by its status alone. */
  readonly frame: Frame;
  readonly headers: Readonly<Record<string, string>>;
  /** For everything from name resolution to the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly outcome: ProbeOutcome;
  /** Undefined: there was no response. */
  readonly head: ResponseHead | undefined;
  /** Why there was none. */
  readonly error: BridgeError | undefined;
  /** What came of it, in plain words. */
  readonly words: string;
  readonly tookMs: number;
}

/**
 * Posts one message and waits for its answer, in a body or in an event stream, whichever the server chooses. Resolves
 * whatever happens; rejects only with the reason of the signal.
 */
export async function askHttp(target: HttpTarget, question: HttpQuestion): Promise<HttpAnswer> {
  const { frame, headers, timeoutMs, signal } = question;
  const accepted = { Accept: `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`, 'Content-Type': JSON_TYPE, ...headers };
  const request = { method: 'POST', headers: accepted, body: frame.bytes, timeoutMs, signal } as const;
  const seen = await askOnce<Seen>(target, request, (settle) => {
    return new AnswerReader(frame.id, target.maxMessageBytes, settle);
  });
  const { outcome, head, error } = seen;
  const isTaken = frame.kind === 'notification' && head !== undefined;
  const context = { name: showUrl(target.url), headers: head?.headers };
  return { ...seen, words: isTaken ? describeStatus(head.status) : describeAttempt(outcome, error, context) };
}

type Seen = Pick<HttpAnswer, 'outcome' | 'head' | 'error'>;
type Settle = (seen: Seen) => void;

class AnswerReader implements HttpHandler {
  readonly #id: JsonRpcId | undefined;
  readonly #maxBytes: number;
  readonly #settle: Settle;
  #head: ResponseHead | undefined;
  #stream: SseDecoder | undefined;
  readonly #body: Buffer[] = [];
  #length = 0;
  #isSettled = false;

  constructor(id: JsonRpcId | undefined, maxBytes: number, settle: Settle) {
    this.#id = id;
    this.#maxBytes = maxBytes;
    this.#settle = settle;
  }

  sent(): void {}

  response(head: ResponseHead): void {
    this.#head = head;
    const { status, headers } = head;
    const isEmpty = status === 202 || status === 204 || this.#id === undefined;
    if (isEmpty) return this.#finish({ kind: 'status', http: statusOf(head) });
    if (headers['content-type']?.toLowerCase().startsWith(EVENT_STREAM_TYPE) !== true) return;
    this.#stream = new SseDecoder(
      {
        event: ({ data }) => this.#read(data),
        retry: () => {},
        oversized: () => {},
      },
      this.#maxBytes,
    );
  }

  data(chunk: Buffer): void {
    if (this.#isSettled) return;
    if (this.#stream !== undefined) return this.#stream.push(chunk);
    this.#length += chunk.length;
    // A page that never ends is no answer either.
    if (this.#length > this.#maxBytes) return this.end();
    this.#body.push(chunk);
  }

  end(): void {
    if (this.#stream === undefined) this.#read(Buffer.concat(this.#body));
    if (this.#head !== undefined) {
      this.#finish(this.#stream === undefined ? { kind: 'status', http: statusOf(this.#head) } : { kind: 'lost' });
    }
  }

  error(error: BridgeError): void {
    this.#finish(outcomeOfError(error), error);
  }

  #read(bytes: Buffer): void {
    if (this.#isSettled || this.#head === undefined || this.#id === undefined) return;
    const response = findResponse(bytes, this.#id);
    if (response !== undefined) this.#finish(outcomeOfResponse(response, statusOf(this.#head)));
  }

  #finish(outcome: ProbeOutcome, error?: BridgeError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#settle({ outcome, head: this.#head, error });
  }
}
