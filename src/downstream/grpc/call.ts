import { IncomingMessage } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { CONTENT_TYPE, ENCODING } from '../../grpc/session-service.ts';
import { type GrpcStatus, statusOf, statusTrailers } from '../../grpc/status.ts';
import { LAST_WORDS_MS } from './connection.ts';

/** A call of gRPC as it arrives, before anything was answered. */
export class GrpcCall {
  readonly stream: ServerHttp2Stream;
  readonly path: string;
  /** The call as a request of HTTP/1.1, which admission judges and whose caller it names. Its body is never read. */
  readonly request: IncomingMessage;
  readonly #clock: Clock;

  constructor(
    stream: ServerHttp2Stream,
    { headers, rawHeaders }: { headers: IncomingHttpHeaders; rawHeaders: readonly string[] },
    clock: Clock,
  ) {
    this.#clock = clock;
    this.stream = stream;
    this.path = headers[':path'] ?? '';
    this.request = toRequest(stream, rawHeaders);
    this.request.url = this.path;
    this.request.method = headers[':method'] ?? '';
  }

  /** True if the client has left, or the call was answered. */
  get isOver(): boolean {
    return this.stream.destroyed || this.stream.closed || this.stream.headersSent;
  }

  /** Answers the call with an error in place of a session. */
  refuse(error: BridgeError): void {
    this.end(statusOf(error));
  }

  /** Ends the call with this status and without a message. [gRPC over HTTP2, Trailers-Only] */
  end(status: GrpcStatus): void {
    this.#answer({
      [constants.HTTP2_HEADER_STATUS]: '200',
      [constants.HTTP2_HEADER_CONTENT_TYPE]: CONTENT_TYPE,
      'grpc-accept-encoding': ENCODING,
      ...statusTrailers(status),
    });
  }

  /** Answers what is no call of gRPC. [gRPC over HTTP2, Content-Type] */
  respond(httpStatus: number): void {
    this.#answer({ [constants.HTTP2_HEADER_STATUS]: String(httpStatus) });
  }

  /**
   * A client that goes on sending is told after a while that nobody reads it. Were it told at once, some releases of Node would drop
   * the answer.
   */
  #answer(headers: Record<string, string>): void {
    if (this.isOver) return;
    const { stream } = this;
    stream.respond(headers, { endStream: true });
    // The stream discards what arrives, which has to be read for its end to be noticed.
    stream.resume();
    const cancelTimer = this.#clock.after(LAST_WORDS_MS, () => stream.close(constants.NGHTTP2_NO_ERROR));
    stream.once('close', cancelTimer);
  }
}

/**
 * Joins headers that occur twice, so that they match no host and no token: otherwise one of them would count here and
 * another one at a proxy. `Host` beside another `:authority` is the same case. [RFC 9113 8.3.1]
 */
function toRequest(stream: ServerHttp2Stream, rawHeaders: readonly string[]): IncomingMessage {
  const request = new IncomingMessage(stream.session?.socket as IncomingMessage['socket']);
  const distinct: Record<string, string[]> = Object.create(null);
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const written = rawHeaders[index] ?? '';
    const name = written === constants.HTTP2_HEADER_AUTHORITY ? 'host' : written;
    if (name.startsWith(':')) continue;
    distinct[name] ??= [];
    distinct[name].push(rawHeaders[index + 1] ?? '');
  }
  distinct.host = [...new Set(distinct.host)];
  request.headersDistinct = distinct;
  request.headers = Object.fromEntries(
    Object.entries(distinct).flatMap(([name, values]) => (values.length === 0 ? [] : [[name, values.join(', ')]])),
  );
  return request;
}
