import type { BridgeError } from '../../errors.ts';
import type { HttpCall, HttpClient, HttpHandler, ResponseHead } from '../../http/client.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/content-type.ts';
import type { SessionCookies } from '../../http/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { ProbeOutcome } from '../../mcp/classify-probe.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { SseDecoder } from '../../wire/sse-decode.ts';
import { describeAttempt, describeStatus } from './describe-outcome.ts';
import { findResponse, outcomeOfError, outcomeOfResponse, statusOf } from './http-outcome.ts';

/** The server to ask, as one client sees it. */
export interface HttpTarget {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  /** Headers of the client's request that may go along; see Lane. */
  readonly forwarded?: Readonly<Record<string, string>> | undefined;
  readonly maxMessageBytes: number;
}

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
export function askHttp(target: HttpTarget, question: HttpQuestion): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { signal, timeoutMs } = question;
    if (signal.aborted) return reject(signal.reason);
    const abort = (): void => {
      call.abort();
      reject(signal.reason);
    };
    const startedMs = target.http.clock.now();
    const handler = new AnswerReader(question.frame.id, target.maxMessageBytes, (outcome, head, error) => {
      signal.removeEventListener('abort', abort);
      call.abort();
      const name = showUrl(target.url);
      const words =
        question.frame.kind === 'notification' && head !== undefined
          ? describeStatus(head.status)
          : describeAttempt(outcome, error, { name, headers: head?.headers });
      resolve({ outcome, head, error, words, tookMs: target.http.clock.now() - startedMs });
    });
    const call: HttpCall = target.http.request(
      {
        method: 'POST',
        url: target.url,
        headers: { Accept: `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`, 'Content-Type': JSON_TYPE, ...question.headers },
        forwarded: target.forwarded,
        body: question.frame.bytes,
        timeouts: { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: 0, callMs: timeoutMs },
        cookies: target.cookies,
        // Nothing that is asked this way changes anything at the server beyond opening a session.
        isRepeatable: true,
      },
      handler,
    );
    signal.addEventListener('abort', abort, { once: true });
  });
}

type Settle = (outcome: ProbeOutcome, head: ResponseHead | undefined, error: BridgeError | undefined) => void;

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
    this.#settle(outcome, this.#head, error);
  }
}
