/**
 * One place for calls in flight: a request that was encoded once, in which only a number changes from call to call, and
 * the answer it has to get. The number is the id, the progress token and part of the text that comes back, so an answer
 * that is lost, doubled, mixed up or meant for another client is noticed.
 */
import type { Era, Workload } from './workload.ts';

/** Where the number goes; as long as every number, and found nowhere else. */
const PLACE = '999999999';
const FIRST_NUMBER = 100_000_000;
/** Longer texts are not parsed but searched for. */
const MAX_PARSED_BYTES = 4096;

const META_OF_ERA = {
  legacy: '',
  modern:
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28",' +
    '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},' +
    '"io.modelcontextprotocol/clientCapabilities":{}',
} as const;

export interface CallOptions {
  readonly workload: Workload;
  readonly client: string;
  readonly era: Era;
  readonly answersIn: Era;
  /** What stands before the body, such as HTTP headers. */
  readonly head: (bodyBytes: number) => string;
  readonly tail: string;
}

export class Call {
  readonly bytes: Buffer;
  readonly #workload: Workload;
  readonly #client: string;
  readonly #answersIn: Era;
  readonly #expectedText: string;
  readonly #exact: Buffer;
  readonly #places: readonly number[];
  readonly #exactPlaces: readonly number[];
  #number = FIRST_NUMBER;
  #events = 0;

  constructor({ workload, client, era, answersIn, head, tail }: CallOptions) {
    this.#workload = workload;
    this.#client = client;
    this.#answersIn = answersIn;
    const body = encodeBody({ workload, client, era });
    this.bytes = Buffer.from(`${head(body.length)}${body}${tail}`, 'latin1');
    this.#expectedText = JSON.parse(`"${workload.expected.toString('latin1')}"`);
    const end = answersIn === 'modern' ? '"}],"resultType":"complete"}}' : '"}]}}';
    const start = `{"jsonrpc":"2.0","id":${PLACE},"result":{"content":[{"type":"text","text":"${client}-${PLACE}`;
    this.#exact = Buffer.concat([Buffer.from(start), workload.expected, Buffer.from(end)]);
    this.#places = findPlaces(this.bytes);
    this.#exactPlaces = findPlaces(this.#exact);
  }

  get number(): number {
    return this.#number;
  }

  /** Makes this the call of that index. */
  renumber(index: number): void {
    this.#number = FIRST_NUMBER + index;
    this.#events = 0;
    const digits = String(this.#number);
    for (const place of this.#places) this.bytes.write(digits, place, 'latin1');
    for (const place of this.#exactPlaces) this.#exact.write(digits, place, 'latin1');
  }

  /** Checks one message that came for this call. Returns whether it is the answer; throws if anything is wrong. */
  accept(message: Buffer): boolean {
    // A bridge that leaves bytes alone is checked by comparing them; the others may write JSON in their own way.
    if (message.equals(this.#exact)) return this.#settle();
    const { expected } = this.#workload;
    const at = expected.length > MAX_PARSED_BYTES ? message.indexOf(expected) : -1;
    // A long text that stands there unchanged is cut out; only what is around it is parsed.
    const parsed = JSON.parse(at === -1 ? message.toString() : cutOut(message, at, expected.length));
    if (parsed.method === 'notifications/progress') {
      this.#acceptProgress(parsed.params);
      return false;
    }
    if (parsed.method !== undefined) {
      if (parsed.id === undefined) return false;
      throw new WrongAnswer(`a request of the server, ${parsed.method}, that it did not send`);
    }
    if (parsed.id !== this.#number) throw new WrongAnswer(`id ${parsed.id} instead of ${this.#number}`);
    if (parsed.error !== undefined) throw new WrongAnswer(`error ${JSON.stringify(parsed.error).slice(0, 200)}`);
    if (this.#answersIn === 'modern' && parsed.result?.resultType !== 'complete') {
      throw new WrongAnswer('an answer without the result type of its era');
    }
    const said = parsed.result?.content?.[0]?.text;
    const wanted = `${this.#client}-${this.#number}${at === -1 ? this.#expectedText : ''}`;
    if (said !== wanted) {
      throw new WrongAnswer(`the text ${String(said).slice(0, 40)} instead of ${wanted.slice(0, 40)}`);
    }
    return this.#settle();
  }

  #settle(): true {
    const { progressEvents } = this.#workload;
    if (this.#events !== progressEvents) {
      throw new WrongAnswer(`${this.#events} progress events before the answer instead of ${progressEvents}`);
    }
    return true;
  }

  #acceptProgress({ progressToken, progress }: { progressToken: unknown; progress: number }): void {
    if (progressToken !== this.#number) throw new WrongAnswer(`progress of ${progressToken} for ${this.#number}`);
    this.#events += 1;
    if (progress !== this.#events) throw new WrongAnswer(`progress ${progress} as the ${this.#events}th event`);
  }
}

function cutOut(message: Buffer, start: number, length: number): string {
  return message.toString('latin1', 0, start) + message.toString('latin1', start + length);
}

/** A message that is not what the server sent, or went to the wrong call. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

function encodeBody({ workload, client, era }: Pick<CallOptions, 'workload' | 'client' | 'era'>): string {
  const token = workload.progressEvents > 0 ? `"progressToken":${PLACE}` : '';
  const members = [token, META_OF_ERA[era]].filter((member) => member !== '').join(',');
  const meta = members === '' ? '' : `,"_meta":{${members}}`;
  return (
    `{"jsonrpc":"2.0","id":${PLACE},"method":"tools/call","params":{"name":"${workload.tool}",` +
    `"arguments":{"tag":"${client}-${PLACE}"${workload.argumentsTail}}${meta}}}`
  );
}

/** A request without parameters of its own, in the words of the era. */
export function encodeRequest(id: number, method: string, era: Era): string {
  const meta = era === 'modern' ? `"_meta":{${META_OF_ERA.modern}}` : '';
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${meta}}}`;
}

function findPlaces(bytes: Buffer): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(PLACE); at !== -1; at = bytes.indexOf(PLACE, at + PLACE.length)) places.push(at);
  return places;
}

const EXACT_HEAD = Buffer.from('{"jsonrpc":"2.0","id":');

/** The number of the call that a message is for: its id or its progress token; undefined if it has neither. */
export function readNumber(message: Buffer): number | undefined {
  const digits = EXACT_HEAD.length;
  if (message.compare(EXACT_HEAD, 0, digits, 0, Math.min(digits, message.length)) === 0) {
    return Number.parseInt(message.toString('latin1', digits, digits + PLACE.length), 10);
  }
  if (message.length <= MAX_PARSED_BYTES) {
    const { id, params } = JSON.parse(message.toString());
    return id ?? params?.progressToken;
  }
  // Some write the id at the end.
  const ends = message.toString('latin1', 0, 200) + message.toString('latin1', message.length - 200);
  const found = /"id":(\d+)/.exec(ends);
  return found === null ? undefined : Number(found[1]);
}
