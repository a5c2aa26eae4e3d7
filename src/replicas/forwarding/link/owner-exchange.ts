import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { DetachedRequest, DetachedResponse, type WrittenHeader } from '../../../http/server/detached-exchange.ts';
import type { BodyInput, BodyOutput } from './body-flow.ts';
import type { PassedHead, ReturnedHead } from './heads.ts';

/** A request forwarded by another replica. */
export class PassedRequest extends DetachedRequest {
  readonly #distinct: Readonly<Record<string, readonly string[]>>;
  readonly #input: BodyInput;
  /** Received bytes that have not been read. */
  #unreadBytes = 0;

  constructor({ method, target, headers }: PassedHead, input: BodyInput) {
    const distinct = gather(headers);
    super({ method, url: target, headers: join(distinct), socket: new Socket() });
    this.#distinct = distinct;
    this.#input = input;
  }

  override get headersDistinct(): Readonly<Record<string, readonly string[]>> {
    return this.#distinct;
  }

  /** Receives a part of the body. */
  came(bytes: Buffer): void {
    if (this.push(bytes)) this.#input.read(bytes.length);
    else this.#unreadBytes += bytes.length;
  }

  override _read(): void {
    const bytes = this.#unreadBytes;
    this.#unreadBytes = 0;
    if (bytes > 0) this.#input.read(bytes);
  }
}

function gather(headers: readonly string[]): Record<string, string[]> {
  const gathered: Record<string, string[]> = Object.create(null);
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const [name = '', value = ''] = [headers[index], headers[index + 1]];
    const known = gathered[name];
    if (known === undefined) gathered[name] = [value];
    else known.push(value);
  }
  return gathered;
}

/** Joins repeated headers in the same way as the listener has Node join them. */
function join(distinct: Readonly<Record<string, readonly string[]>>): Record<string, string> {
  const joined: Record<string, string> = Object.create(null);
  for (const name in distinct) {
    const values = distinct[name] as readonly string[];
    joined[name] = values.length === 1 ? (values[0] as string) : values.join(name === 'cookie' ? '; ' : ', ');
  }
  return joined;
}

/** Waiting bytes above which the writer is told to wait, the same as for a Node connection. */
const FULL_BYTES = 64 * 1024;

/** Carries the response of a forwarded request back to the replica that forwarded it. */
export interface ResponseCarrier {
  readonly output: BodyOutput;
  begin(head: ReturnedHead): void;
  /** Aborts the response, so that the client notices that it is incomplete. */
  cut(): void;
}

export class PassedResponse extends DetachedResponse {
  readonly #carrier: ResponseCarrier;
  #onDrain: (() => void) | undefined;

  constructor(req: PassedRequest, carrier: ResponseCarrier) {
    super(req, FULL_BYTES);
    this.#carrier = carrier;
  }

  /**
   * The request's detached socket. Code that detects clients that do not read looks at the bytes waiting here, because
   * the link's own connection is shared by all streams.
   */
  get socket(): Socket {
    return this.req.socket;
  }

  protected override begin(headers: readonly WrittenHeader[]): void {
    this.#carrier.begin({ status: this.statusCode, headers: headers.flat() });
  }

  override _write(bytes: Buffer, _encoding: string, taken: () => void): void {
    this.flushHeaders();
    if (this.#carrier.output.write(bytes)) taken();
    else this.#onDrain = taken;
  }

  /** Called when the other end accepts more bytes. */
  drained(): void {
    const taken = this.#onDrain;
    this.#onDrain = undefined;
    taken?.();
  }

  /**
   * Finishes synchronously if all written bytes have been passed on, which is usual. The end is then sent in the same
   * turn of the event loop, also by a replica that is shutting down.
   */
  override end(...last: readonly unknown[]): this {
    super.end(...(last as Parameters<Writable['end']>));
    if (this.writableLength === 0 && !this.destroyed) this.#finish();
    return this;
  }

  override _final(finished: () => void): void {
    this.#finish();
    finished();
  }

  #finish(): void {
    this.flushHeaders();
    this.#carrier.output.end();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    if (!this.writableFinished) this.#carrier.cut();
    destroyed(error);
  }
}
