/**
 * Readers for the response to one message, in each form that a server may choose, and the errors for invalid responses.
 */
import { BridgeError } from '../../errors.ts';
import { EVENT_STREAM_TYPE, JSON_TYPE } from '../../http/headers.ts';
import { showUrl } from '../../http/shown-url.ts';
import { ByteCollector } from '../../wire/byte-collector.ts';
import { skipWhitespace } from '../../wire/json/scan-json.ts';
import { type RecoveredEnvelope, recoverEnvelope } from '../../wire/scan-envelope.ts';
import { SseDecoder } from '../../wire/sse-decode.ts';
import { oversizedError } from '../server-messages.ts';

/** Reads the body of a 2xx response in any of its forms. */
export interface AnswerReader {
  readonly isStream: boolean;
  /** Id of the last event, from which the stream can be resumed. */
  readonly lastEventId: string | undefined;
  push(chunk: Buffer): void;
  /** The body is complete. */
  end(): void;
}

/** The known parts of a message that was too long to keep. Only its length is known if it was not an event. */
export interface OversizedText extends RecoveredEnvelope {
  readonly byteLength: number;
}

/** Receives what a reader finds. Called synchronously from `push` and `end`. */
export interface AnswerSink {
  /** Called with a JSON text, whose bytes the receiver owns. `eventId` is given if it came as an event with an id. */
  text(bytes: Buffer, eventId?: string): void;
  /** Called for a text over the size limit, which was discarded. */
  oversized(text: OversizedText): void;
  retry(ms: number): void;
  /** Called if the body is the event stream of HTTP+SSE instead of an answer. */
  endpoint(): void;
}

const NOTHING = Buffer.alloc(0);

/** Reads a JSON body, which is one text, delivered when the body ends. */
class JsonReader implements AnswerReader {
  readonly isStream = false;
  readonly lastEventId = undefined;
  readonly #sink: AnswerSink;
  readonly #maxBytes: number;
  /** The body's first chunk, which usually is all of it, or a collector once there are several. */
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

/** Reads an event stream, in which every event is one JSON text. */
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

/**
 * Form of a response by its content type. `unsure` means that the type does not tell, so the body's first bytes decide.
 */
export type AnswerForm = 'json' | 'events' | 'unsure' | 'neither';

const SAYS_NOTHING: ReadonlySet<string> = new Set(['', 'text/plain', 'application/octet-stream', 'text/json']);

export function classifyAnswer(contentType: string | undefined): AnswerForm {
  if (contentType === JSON_TYPE) return 'json';
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === JSON_TYPE || type.endsWith('+json')) return 'json';
  if (type === EVENT_STREAM_TYPE) return 'events';
  return SAYS_NOTHING.has(type) ? 'unsure' : 'neither';
}

/**
 * First characters of a line in an event stream: those of its fields (data, event, id, retry), and the colon of a
 * comment.
 */
const LINE_BEGINNINGS = Buffer.from('deir:');

/**
 * Determines the form of a body by its first bytes. Returns undefined while there is only whitespace. A body that is
 * neither, such as a page of text, is read as JSON and found to hold no answer; unlike a stream it is not resumed.
 */
function sniffAnswer(bytes: Buffer): 'json' | 'events' | undefined {
  const first = bytes[skipWhitespace(bytes, 0)];
  if (first === undefined) return undefined;
  return LINE_BEGINNINGS.includes(first) ? 'events' : 'json';
}

/** Reads a body whose content type does not tell its form. */
class UnsureReader implements AnswerReader {
  readonly #sink: AnswerSink;
  readonly #maxBytes: number;
  /** Undefined until the body's first bytes have shown the form. */
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

/** Creates a reader for the form that the content type or, if that does not tell, the first bytes show. */
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

/** Creates the errors for an invalid or missing answer to one message. */
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

  /**
   * Creates the error for a stream that broke before the answer.
   * @param wasResumable true if there was an event to resume from
   */
  lost(cause: BridgeError | undefined, wasResumable: boolean): BridgeError {
    // A time limit of our own ended the stream; its error names the limit.
    if (cause?.code === 'ERR_UPSTREAM_TIMEOUT') return cause;
    const why = wasResumable ? 'could not resume it' : 'gave no event id to resume it from';
    const detail = cause === undefined ? '' : ` ${cause.message}`;
    return new BridgeError(
      'ERR_UPSTREAM_CLOSED',
      `The server at ${this.#server} broke the stream off before the answer to ${this.#method}, and ${why}; whether the call was carried out is not known.${detail}`,
      { cause },
    );
  }
}

/** True if the error is a broken connection, as opposed to an exceeded limit or an unreadable answer. */
export function isBreak({ code }: BridgeError): boolean {
  return code === 'ERR_UPSTREAM_CLOSED' || code === 'ERR_UPSTREAM_CONNECT';
}

/** True if the error is the time limit of the whole call, after which nothing is retried. */
export function isCallLimit(error: BridgeError | undefined): error is BridgeError {
  return error?.code === 'ERR_UPSTREAM_TIMEOUT' && error.data?.phase === 'call';
}
