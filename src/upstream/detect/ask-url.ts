import type { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { HttpCall, HttpHandler, HttpRequest, ResponseHead } from '../../http/client/http-call.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { findOlderOffer } from '../../mcp/classify/older-offer.ts';
import type { ProbeOutcome } from '../../mcp/classify/probe-answer.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { toPrintable } from '../../printable.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import { type DecodedEvent, SseDecoder } from '../../wire/sse-decode.ts';
import { classifyAnswer } from '../remote/answer-reader.ts';
import { Outgoing } from '../remote/link-messages.ts';
import { PostedCall, type PostHost, type Posting } from '../remote/posted-call.ts';
import { ACCEPT_ANSWER } from '../remote/session-key.ts';
import {
  type Answer,
  type AnyOutcome,
  describeAttempt,
  describeOutcome,
  describeStatus,
  findResponse,
  outcomeOfError,
  outcomeOfResponse,
  statusOf,
} from './answer.ts';

/** The server to ask, as one client sees it. */
export interface HttpTarget {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  /** Headers of the client's request that are forwarded to the server; see `Lane`. */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  readonly maxMessageBytes: number;
}

interface OneRequest {
  /** Time limit for everything from name resolution to the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends one request, and closes its connection as soon as the reader has seen enough. Rejects only with the reason of
 * the signal; all other results resolve.
 * @param start completes and sends the request, and makes the reader call `settle`
 */
function askOnce<Seen extends object>(
  target: HttpTarget,
  { timeoutMs, signal }: OneRequest,
  start: (
    request: Omit<HttpRequest, 'method' | 'headers' | 'body'>,
    settle: (seen: Seen) => void,
  ) => Pick<HttpCall, 'abort'>,
): Promise<Seen & { readonly tookMs: number }> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const { http, url, forwarded, cookies } = target;
    const abort = (): void => {
      call.abort();
      reject(signal.reason);
    };
    const startedMs = http.clock.now();
    const timeouts = { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: 0, callMs: timeoutMs };
    // The request may be repeated, because a question changes nothing at the server, except that it may open a session.
    const call = start({ url, forwarded, timeouts, cookies, isRepeatable: true }, (seen) => {
      signal.removeEventListener('abort', abort);
      call.abort();
      resolve({ ...seen, tookMs: http.clock.now() - startedMs });
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}

export interface HttpQuestion {
  /** A notification is answered by its status alone. */
  readonly frame: Frame;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit for everything from name resolution to the answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Posts one message and waits for its answer, in a body or in an event stream. A handshake that is refused because of
 * its revision is posted once more, with the newest revision that the server lists, as links do. Rejects only with the
 * reason of the signal; all other results resolve.
 */
export async function askHttp(target: HttpTarget, question: HttpQuestion): Promise<Answer<ProbeOutcome>> {
  const answer = await post(target, question);
  const { frame } = question;
  const { outcome } = answer;
  if (frame.method !== INITIALIZE || outcome.kind !== 'error') return answer;
  const older = findOlderOffer(frame, outcome.error.data);
  return older === undefined ? answer : post(target, { ...question, frame: older.frame });
}

async function post(target: HttpTarget, question: HttpQuestion): Promise<Answer<ProbeOutcome>> {
  const { frame } = question;
  const headers = { Accept: ACCEPT_ANSWER, 'Content-Type': JSON_TYPE, ...question.headers };
  const seen = await askOnce<SeenResponse>(target, question, (request, settle) => {
    const posted = { ...request, method: 'POST', headers, body: frame.bytes } as const;
    return new PostedCall(createPosting(target), createReader(settle), new Outgoing(frame), posted);
  });
  const { outcome, head, error } = seen;
  const isTaken = frame.kind === 'notification' && head !== undefined;
  const context = { name: showUrl(target.url), headers: head?.headers };
  return { ...seen, summary: isTaken ? describeStatus(head.status) : describeAttempt(outcome, error, context) };
}

type SeenResponse = Pick<Answer<ProbeOutcome>, 'outcome' | 'head' | 'error'>;

/** Reads a response of any status, unless it cannot contain an answer. */
function createPosting({ http, url, maxMessageBytes }: HttpTarget): Posting {
  return {
    environment: { http, url, maxMessageBytes, scanner: new EnvelopeScanner(), log: SILENT },
    useOf: ({ status, headers }, { kind }) => {
      if (status === 202 || status === 204 || kind !== 'request') return 'nothing';
      return classifyAnswer(headers['content-type']) === 'events' ? 'events' : 'json';
    },
    answersOnStream: false,
    readsOn: false,
    lingerMs: 0,
    resume: undefined,
  };
}

const SILENT: Posting['environment']['log'] = { debug() {}, error() {} };

/** Creates the reader of a posted question. It settles at the first sign of what the server speaks. */
function createReader(settle: (seen: SeenResponse) => void): PostHost {
  let head: ResponseHead | undefined;
  const finish = (outcome: ProbeOutcome, error?: BridgeError): void => settle({ outcome, head, error });
  const onlyStatus = (): void => {
    if (head !== undefined) finish({ kind: 'status', http: statusOf(head) });
  };
  return {
    left: () => {},
    responded: (_, responded) => {
      head = responded;
    },
    answered: ({ message }, answer) => {
      const response = findResponse(answer.bytes, message.frame.id as JsonRpcId);
      if (response === undefined) onlyStatus();
      else finish(outcomeOfResponse(response, head && statusOf(head)));
    },
    lingers: onlyStatus,
    over: (_, end) => {
      if (end.kind === 'broken-off')
        finish(end.cause === undefined ? { kind: 'lost' } : outcomeOfError(end.cause), end.cause);
      else if (end.kind !== 'failed') onlyStatus();
      else if (end.why === 'connection') finish(outcomeOfError(end.error), end.error);
      else if (end.why === 'http-sse') finish({ kind: 'http-sse' });
      else onlyStatus();
    },
  };
}

/**
 * Time after which a GET is sent beside a POST that has no answer, because some servers of HTTP+SSE do not answer such
 * a POST.
 */
export const SILENCE_MS = 3000;
/**
 * Time for which an answer to the POST still counts after the GET has opened an event stream of HTTP+SSE. A server of
 * several transports may only be slow, for example because the request starts it.
 */
export const SLOW_ANSWER_MS = 2000;
/** Time limit of the GET. A server of HTTP+SSE announces its endpoint at once or not at all. */
const BESIDE_TIMEOUT_MS = 5000;
const FOUND_BESIDE = 'no answer, but GET opens the event stream of HTTP+SSE';

/**
 * Asks by POST. If no answer comes in time, also looks for the event stream of HTTP+SSE. A server of Streamable HTTP
 * is expected to refuse such a GET without a session, and its answer to the POST is still awaited.
 * @param ask rejects when its signal aborts
 * @param slowAnswerMs time for which an answer to the POST counts after the event stream was found
 */
export async function askBesideStream(
  target: HttpTarget,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer<ProbeOutcome>>,
  slowAnswerMs = SLOW_ANSWER_MS,
): Promise<Answer<ProbeOutcome>> {
  const { clock } = target.http;
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const startedMs = clock.now();
  let cancel = (): void => {};
  let isThere = false;
  const foundBeside = (): Answer<ProbeOutcome> => {
    const tookMs = clock.now() - startedMs;
    return { outcome: { kind: 'http-sse' }, head: undefined, error: undefined, summary: FOUND_BESIDE, tookMs };
  };
  const beside = new Promise<Answer<ProbeOutcome>>((resolve) => {
    cancel = clock.after(SILENCE_MS, () => {
      const question = { headers: {}, until: 'endpoint', timeoutMs: BESIDE_TIMEOUT_MS, signal: both } as const;
      const settle = ({ outcome }: Answer): void => {
        if (outcome.kind !== 'found') return;
        isThere = true;
        cancel = clock.after(slowAnswerMs, () => resolve(foundBeside()));
      };
      // A rejection only means that the answer is not needed anymore.
      askEventStream(target, question).then(settle, () => {});
    });
  });
  try {
    const answer = await Promise.race([ask(both), beside]);
    return isThere && answer.outcome.kind === 'silence' ? foundBeside() : answer;
  } finally {
    cancel();
    over.abort();
  }
}

/** The event with which a server of HTTP+SSE begins its stream. [spec 2024-11-05 basic/transports#http-with-sse] */
const ENDPOINT_EVENT = 'endpoint';

/** Bytes of the first event. A longer one is no endpoint. */
const MAX_FIRST_EVENT_BYTES = 64 * 1024;

export interface StreamQuestion {
  readonly headers: Readonly<Record<string, string>>;
  /** `endpoint`: waits for the event that opens HTTP+SSE. `open`: the stream alone is enough. */
  readonly until: 'endpoint' | 'open';
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Opens an event stream by GET, reads its beginning, and closes it. Rejects only with the reason of the signal. */
export function askEventStream(target: HttpTarget, question: StreamQuestion): Promise<Answer> {
  const { headers, until, timeoutMs, signal } = question;
  const accepted = { Accept: EVENT_STREAM_TYPE, 'Cache-Control': 'no-store', ...headers };
  return askOnce<SeenStream>(target, { timeoutMs, signal }, (request, settle) => {
    const get = { ...request, method: 'GET', headers: accepted, body: undefined } as const;
    return target.http.request(get, new StreamReader(target.url, until, settle));
  });
}

type SeenStream = Omit<Answer, 'tookMs'>;

class StreamReader implements HttpHandler {
  readonly #url: URL;
  readonly #until: StreamQuestion['until'];
  readonly #settle: (seen: SeenStream) => void;
  readonly #decoder: SseDecoder;
  #head: ResponseHead | undefined;
  #isSettled = false;

  constructor(url: URL, until: StreamQuestion['until'], settle: (seen: SeenStream) => void) {
    this.#url = url;
    this.#until = until;
    this.#settle = settle;
    this.#decoder = new SseDecoder(
      {
        event: (event) => this.#firstEvent(event),
        retry: () => {},
        oversized: () => this.#wrong('an event stream that does not begin with an "endpoint" event'),
      },
      MAX_FIRST_EVENT_BYTES,
    );
  }

  sent(): void {}

  response(head: ResponseHead): void {
    this.#head = head;
    const isStream = head.headers['content-type']?.toLowerCase().startsWith(EVENT_STREAM_TYPE) === true;
    if (head.status !== 200 || !isStream) {
      const outcome: ProbeOutcome = { kind: 'status', http: statusOf(head) };
      const summary = head.status === 200 ? '200 OK, but no event stream' : describeOutcome(outcome, head.headers);
      return this.#finish(outcome, summary);
    }
    if (this.#until === 'open') this.#finish({ kind: 'found' }, 'an event stream');
  }

  data(chunk: Buffer): void {
    if (!this.#isSettled) this.#decoder.push(chunk);
  }

  #firstEvent({ event, data }: DecodedEvent): void {
    if (event !== ENDPOINT_EVENT) {
      const shown = toPrintable(event, 40);
      return this.#wrong(`an event stream that begins with a "${shown}" event instead of "endpoint"`);
    }
    const text = data.toString('utf8');
    if (!URL.canParse(text, this.#url.href)) return this.#wrong('an "endpoint" event that holds no URL');
    const endpoint = new URL(text, this.#url);
    // Messages and credentials are only for the server that the user named, even if that server names another.
    if (endpoint.origin !== this.#url.origin) {
      return this.#wrong(`an "endpoint" event that leads to another origin, ${showUrl(endpoint)}; that is refused`);
    }
    this.#finish({ kind: 'found' }, 'an "endpoint" event');
  }

  end(): void {
    this.#wrong('an event stream that ended without an "endpoint" event');
  }

  error(error: BridgeError): void {
    const outcome = outcomeOfError(error);
    if (this.#head === undefined) {
      return this.#finish(outcome, describeAttempt(outcome, error, { name: showUrl(this.#url) }), error);
    }
    const how = outcome.kind === 'silence' ? 'without an "endpoint" event in time' : 'that broke at its beginning';
    this.#finish(outcome, `an event stream ${how}`, error);
  }

  #wrong(summary: string): void {
    if (this.#head !== undefined) this.#finish({ kind: 'status', http: statusOf(this.#head) }, summary);
  }

  #finish(outcome: AnyOutcome, summary: string, error?: BridgeError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#settle({ outcome, head: this.#head, error, summary });
  }
}
