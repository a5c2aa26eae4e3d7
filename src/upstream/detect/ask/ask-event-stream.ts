import type { BridgeError } from '../../../errors.ts';
import type { HttpHandler, ResponseHead } from '../../../http/client/http-call.ts';
import { EVENT_STREAM_TYPE } from '../../../http/content-type.ts';
import { showUrl } from '../../../http/shown-url.ts';
import type { ProbeOutcome } from '../../../mcp/classify/probe-answer.ts';
import { toPrintable } from '../../../printable.ts';
import { type DecodedEvent, SseDecoder } from '../../../wire/sse-decode.ts';
import { askOnce, type HttpTarget } from './ask-once.ts';
import { describeAttempt, describeOutcome } from './describe-outcome.ts';
import { outcomeOfError, statusOf } from './http-outcome.ts';

/** Longer events are no endpoint. */
const MAX_FIRST_EVENT_BYTES = 64 * 1024;

export interface StreamQuestion {
  readonly headers: Readonly<Record<string, string>>;
  /** `endpoint`: until the event that opens HTTP+SSE. `open`: the stream alone will do. */
  readonly until: 'endpoint' | 'open';
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface StreamAnswer {
  /** `found`: the stream is what was asked for. */
  readonly outcome: { readonly kind: 'found' } | ProbeOutcome;
  readonly head: ResponseHead | undefined;
  readonly error: BridgeError | undefined;
  /** What came of it, in plain words. */
  readonly words: string;
  readonly tookMs: number;
}

/** Opens an event stream by GET, looks at it, and closes it. Rejects only with the reason of the signal. */
export function askEventStream(target: HttpTarget, question: StreamQuestion): Promise<StreamAnswer> {
  const { headers, until, timeoutMs, signal } = question;
  const accepted = { Accept: EVENT_STREAM_TYPE, 'Cache-Control': 'no-store', ...headers };
  const request = { method: 'GET', headers: accepted, body: undefined, timeoutMs, signal } as const;
  return askOnce<Seen>(target, request, (settle) => new StreamReader(target.url, until, settle));
}

type Seen = Omit<StreamAnswer, 'tookMs'>;

class StreamReader implements HttpHandler {
  readonly #url: URL;
  readonly #until: StreamQuestion['until'];
  readonly #settle: (seen: Seen) => void;
  readonly #decoder: SseDecoder;
  #head: ResponseHead | undefined;
  #isSettled = false;

  constructor(url: URL, until: StreamQuestion['until'], settle: (seen: Seen) => void) {
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
      const words = head.status === 200 ? '200 OK, but no event stream' : describeOutcome(outcome, head.headers);
      return this.#finish(outcome, words);
    }
    if (this.#until === 'open') this.#finish({ kind: 'found' }, 'an event stream');
  }

  data(chunk: Buffer): void {
    if (!this.#isSettled) this.#decoder.push(chunk);
  }

  #firstEvent({ event, data }: DecodedEvent): void {
    if (event !== 'endpoint') {
      const shown = toPrintable(event, 40);
      return this.#wrong(`an event stream that begins with a "${shown}" event instead of "endpoint"`);
    }
    const text = data.toString('utf8');
    if (!URL.canParse(text, this.#url.href)) return this.#wrong('an "endpoint" event that holds no URL');
    const endpoint = new URL(text, this.#url);
    // Messages and credentials are for the server that was named, whatever it says.
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

  #wrong(words: string): void {
    if (this.#head !== undefined) this.#finish({ kind: 'status', http: statusOf(this.#head) }, words);
  }

  #finish(outcome: StreamAnswer['outcome'], words: string, error?: BridgeError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#settle({ outcome, head: this.#head, error, words });
  }
}
