/** Reads the answer to one message, in whatever form the server has chosen, and says what is wrong with it. */
import { BridgeError } from '../../errors.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';
import { skipWhitespace } from '../../wire/json/scan-json.ts';
import { type RecoveredEnvelope, recoverEnvelope } from '../../wire/scan-envelope.ts';
import { SseDecoder } from '../../wire/sse-decode.ts';
import { oversizedError } from '../server-messages.ts';

/** Reads the body of a 2xx answer, whatever form the server chose. */
export interface AnswerReader {
  readonly isStream: boolean;
  /** Where a resumption of the stream would go on. */
  readonly lastEventId: string | undefined;
  push(chunk: Buffer): void;
  /** The body is complete. */
  end(): void;
}

/** What can be told of something that was too long to keep; nothing of it is known where it was not an event. */
export interface OversizedText extends RecoveredEnvelope {
  readonly byteLength: number;
}

/** What a reader finds. Called synchronously from `push` and `end`. */
export interface AnswerSink {
  /** One JSON text; the receiver owns the bytes. `eventId` when it came as an event with an id. */
  text(bytes: Buffer, eventId?: string): void;
  /** Something over the limit went by; nothing of it was kept. */
  oversized(text: OversizedText): void;
  retry(ms: number): void;
  /** It is no answer but the event stream of HTTP+SSE. */
  endpoint(): void;
}

const NOTHING = Buffer.alloc(0);

/** A body of JSON: one text, known when it ends. */
class JsonReader implements AnswerReader {
  readonly isStream = false;
  readonly lastEventId = undefined;
  readonly #sink: AnswerSink;
  readonly #maxBytes: number;
  /** Its only part as it came, which mostly is all of it, or several parts. */
  #body: Buffer | ByteCollector = NOTHING;
  #byteLength = 0;

  constructor(sink: AnswerSink, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    const before = this.#byteLength;
    this.#byteLength += chunk.length;
    if (this.#byteLength <= this.#maxBytes) return this.#keep(chunk);
    this.#body = NOTHING;
    if (before <= this.#maxBytes) this.#sink.oversized({ byteLength: this.#byteLength, ...UNKNOWN });
  }

  #keep(chunk: Buffer): void {
    if (this.#byteLength === chunk.length) {
      this.#body = chunk;
      return;
    }
    if (this.#body instanceof ByteCollector) return this.#body.append(chunk);
    const parts = new ByteCollector();
    parts.append(this.#body);
    parts.append(chunk);
    this.#body = parts;
  }

  end(): void {
    const text = this.#body instanceof ByteCollector ? this.#body.take() : this.#body;
    if (text.length > 0) this.#sink.text(text);
  }
}

const UNKNOWN: RecoveredEnvelope = { kind: undefined, id: undefined, method: undefined };

/** An event stream; every event is one JSON text. */
class EventReader extends SseDecoder implements AnswerReader {
  readonly isStream = true;

  constructor(sink: AnswerSink, maxBytes: number) {
    super(
      {
        event: ({ event, id, data }) => {
          if (event === 'message') sink.text(data, id);
          else if (event === 'endpoint') sink.endpoint();
        },
        retry: (ms) => sink.retry(ms),
        oversized: (byteLength, { head, tail }) => sink.oversized({ byteLength, ...recoverEnvelope(head, tail) }),
      },
      maxBytes,
    );
  }
}

/** What an answer is by its content type; `unsure` where the type says nothing and the body has to be looked at. */
export type AnswerForm = 'json' | 'events' | 'unsure' | 'neither';

const SAYS_NOTHING: ReadonlySet<string> = new Set(['', 'text/plain', 'application/octet-stream', 'text/json']);

export function classifyAnswer(contentType: string | undefined): AnswerForm {
  if (contentType === JSON_TYPE) return 'json';
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === JSON_TYPE || type.endsWith('+json')) return 'json';
  if (type === EVENT_STREAM_TYPE) return 'events';
  return SAYS_NOTHING.has(type) ? 'unsure' : 'neither';
}

/** A line of an event stream begins with one of its fields (data, event, id, retry), or is a comment. */
const LINE_BEGINNINGS = Buffer.from('deir:');

/**
 * The form of a body by its first bytes; undefined while there is nothing but whitespace. What is neither, a page of
 * text say, is read as JSON and so found to hold no answer: it is no stream whose rest might still be had.
 */
function sniffAnswer(bytes: Buffer): 'json' | 'events' | undefined {
  const first = bytes[skipWhitespace(bytes, 0)];
  if (first === undefined) return undefined;
  return LINE_BEGINNINGS.includes(first) ? 'events' : 'json';
}

/** A body whose type says nothing. */
class UnsureReader implements AnswerReader {
  readonly #sink: AnswerSink;
  readonly #maxBytes: number;
  /** Undefined until its first bytes have shown the form. */
  #reader: AnswerReader | undefined = undefined;

  constructor(sink: AnswerSink, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
  }

  get isStream(): boolean {
    return this.#reader?.isStream ?? false;
  }

  get lastEventId(): string | undefined {
    return this.#reader?.lastEventId;
  }

  push(chunk: Buffer): void {
    if (this.#reader === undefined) {
      const form = sniffAnswer(chunk);
      if (form === undefined) return;
      this.#reader = createAnswerReader(form, this.#sink, this.#maxBytes);
    }
    this.#reader.push(chunk);
  }

  end(): void {
    this.#reader?.end();
  }
}

/** Reads a body in the form that its type names or, where that says nothing, its first bytes show. */
export function createAnswerReader(form: AnswerForm, sink: AnswerSink, maxBytes: number): AnswerReader {
  switch (form) {
    case 'json':
      return new JsonReader(sink, maxBytes);
    case 'events':
      return new EventReader(sink, maxBytes);
    default:
      return new UnsureReader(sink, maxBytes);
  }
}

/** What can be wrong with the answer to one message, in words. */
export class CallErrors {
  readonly #server: string;
  readonly #method: string;

  constructor(url: URL, method: string | undefined) {
    this.#server = showUrl(url);
    this.#method = method ?? 'a message';
  }

  oversized({ byteLength, kind }: OversizedText, maxMessageBytes: number): BridgeError {
    const bytes = `at least ${byteLength}`;
    return oversizedError({ sender: `The server at ${this.#server}`, bytes, maxMessageBytes, kind });
  }

  noAnswer(): BridgeError {
    const message = `The server at ${this.#server} ended its response to ${this.#method} without an answer in it.`;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
  }

  notAnAnswer(status: number, contentType: string): BridgeError {
    const type = contentType.split(';', 1)[0]?.slice(0, 50);
    return new BridgeError(
      'ERR_UPSTREAM_PROTOCOL',
      `The server at ${this.#server} answered ${this.#method} with ${status} and ${type} instead of JSON or an event stream. Check that this is the URL of the MCP endpoint.`,
    );
  }

  isHttpSse(): BridgeError {
    const message = `The server at ${this.#server} answered ${this.#method} with the event stream of HTTP+SSE. Use --transport sse.`;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
  }

  resumeRefused(status: number): BridgeError {
    const message = `The server at ${this.#server} answered ${status} to the attempt to resume a stream.`;
    return new BridgeError('ERR_UPSTREAM_HTTP', message, { data: { status } });
  }

  /** The stream broke before the answer; `lastEventId` undefined: it could not even be tried to resume it. */
  lost(lastEventId: string | undefined, cause: BridgeError | undefined): BridgeError {
    // What broke it off was our own limit, which has a name.
    if (cause?.code === 'ERR_UPSTREAM_TIMEOUT') return cause;
    const why = lastEventId === undefined ? 'gave no event id to resume it from' : 'could not resume it';
    const detail = cause === undefined ? '' : ` ${cause.message}`;
    return new BridgeError(
      'ERR_UPSTREAM_CLOSED',
      `The server at ${this.#server} broke the stream off before the answer to ${this.#method}, and ${why}; whether the call was carried out is not known.${detail}`,
      { cause },
    );
  }
}

/** The connection ended. What else fails has said why: a limit of ours, an answer that cannot be read. */
export function isBreak({ code }: BridgeError): boolean {
  return code === 'ERR_UPSTREAM_CLOSED' || code === 'ERR_UPSTREAM_CONNECT';
}

/**
 * After a POST that was cut off, its answer is waited for on the session's event stream for this long: the server may be
 * at work on it, or may never have got the message.
 */
export const LATE_ANSWER_MS = 30_000;

/** The limit on the whole call: trying further is what it forbids. */
export function isCallLimit(error: BridgeError | undefined): boolean {
  return error?.code === 'ERR_UPSTREAM_TIMEOUT' && error.data?.phase === 'call';
}
