import {
  type AnswerForm,
  type AnswerReader,
  type AnswerSink,
  EventReader,
  JsonReader,
  sniffAnswer,
} from './answer-reader.ts';

/** The body of a 2xx response, in the form that its type names or, where that says nothing, its first bytes show. */
export class AnswerBody {
  readonly #sink: AnswerSink;
  readonly #maxBytes: number;
  /** Undefined until the form is known. */
  #reader: AnswerReader | undefined;

  constructor(form: AnswerForm, sink: AnswerSink, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
    this.#reader = this.#createReader(form);
  }

  #createReader(form: AnswerForm | undefined): AnswerReader | undefined {
    if (form === 'json') return new JsonReader(this.#sink, this.#maxBytes);
    return form === 'events' ? new EventReader(this.#sink, this.#maxBytes) : undefined;
  }

  get isStream(): boolean {
    return this.#reader instanceof EventReader;
  }

  /** Where a resumption of the stream would go on. */
  get lastEventId(): string | undefined {
    return this.#reader instanceof EventReader ? this.#reader.lastEventId : undefined;
  }

  push(chunk: Buffer): void {
    this.#reader ??= this.#createReader(sniffAnswer(chunk));
    this.#reader?.push(chunk);
  }

  /** The body is complete. */
  end(): void {
    this.#reader?.end();
  }
}
