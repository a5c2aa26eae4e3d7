import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../deps.ts';
import {
  decodeHealthRequest,
  encodeHealthResponse,
  SERVING_STATUS,
  type ServingStatus,
} from '../../grpc/health-messages.ts';
import { MessageSplitter } from '../../grpc/message-splitter.ts';
import { CONTENT_TYPE, ENCODING, SESSION_SERVICE } from '../../grpc/session-service.ts';
import { type GrpcStatus, OK, STATUS, statusTrailers } from '../../grpc/status.ts';
import type { GrpcCall } from './call.ts';

/** A request names one service. */
const MAX_REQUEST_BYTES = 1024;
/** Time for the request to arrive. */
const REQUEST_MS = 10_000;
/** Interval at which watchers are told of a change. */
const WATCH_MS = 1000;
/** Watchers need no token, so they are few: load balancers and monitors. */
export const MAX_WATCHERS = 64;

export interface HealthServiceOptions {
  /** Returns true if a session could be opened now. */
  readonly isServing: () => boolean;
  readonly clock: Clock;
}

interface Watcher {
  readonly stream: ServerHttp2Stream;
  readonly service: string;
  told: ServingStatus;
}

/**
 * The health service of one port. It needs no token, and tells nothing but its answer. [gRPC Health Checking Protocol]
 */
export class HealthService {
  readonly #options: HealthServiceOptions;
  readonly #watchers = new Set<Watcher>();
  #stopWatching: (() => void) | undefined;

  constructor(options: HealthServiceOptions) {
    this.#options = options;
  }

  check(call: GrpcCall): void {
    this.#readService(call, (service) => {
      const status = this.#statusOf(service);
      if (status === SERVING_STATUS.serviceUnknown) return call.end(UNKNOWN_SERVICE);
      const { stream } = call;
      beginResponse(stream);
      stream.once('wantTrailers', () => stream.sendTrailers(statusTrailers(OK)));
      stream.end(encodeHealthResponse(status));
    });
  }

  watch(call: GrpcCall): void {
    if (this.#watchers.size >= MAX_WATCHERS) return call.end(TOO_MANY);
    this.#readService(call, (service) => {
      const { stream } = call;
      beginResponse(stream);
      const watcher: Watcher = { stream, service, told: this.#statusOf(service) };
      stream.write(encodeHealthResponse(watcher.told));
      this.#watchers.add(watcher);
      this.#stopWatching ??= this.#options.clock.every(WATCH_MS, () => this.#tell());
      stream.once('close', () => {
        this.#watchers.delete(watcher);
        if (this.#watchers.size === 0) this.close();
      });
    });
  }

  #statusOf(service: string): ServingStatus {
    if (service !== '' && service !== SESSION_SERVICE) return SERVING_STATUS.serviceUnknown;
    return this.#options.isServing() ? SERVING_STATUS.serving : SERVING_STATUS.notServing;
  }

  /** A watcher that does not read gets the latest status once it does. */
  #tell(): void {
    for (const watcher of this.#watchers) {
      const status = this.#statusOf(watcher.service);
      if (status === watcher.told || watcher.stream.writableNeedDrain) continue;
      watcher.told = status;
      watcher.stream.write(encodeHealthResponse(status));
    }
  }

  /** Tells watchers the status of this moment, and stops watching. */
  close(): void {
    this.#tell();
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #readService(call: GrpcCall, found: (service: string) => void): void {
    const { stream } = call;
    let service: string | undefined;
    let isFaulty = false;
    const splitter = new MessageSplitter({
      maxMessageBytes: MAX_REQUEST_BYTES,
      message: (bytes) => {
        isFaulty ||= service !== undefined;
        service ??= decodeHealthRequest(bytes);
        isFaulty ||= service === undefined;
      },
      fault: () => {
        isFaulty = true;
      },
    });
    const cancelTimer = this.#options.clock.after(REQUEST_MS, () => call.end(BAD_REQUEST));
    stream.once('close', cancelTimer);
    stream.on('data', (chunk: Buffer) => {
      splitter.push(chunk);
      if (isFaulty) call.end(BAD_REQUEST);
    });
    stream.on('end', () => {
      cancelTimer();
      if (call.isOver) return;
      if (isFaulty || service === undefined || splitter.isWithinMessage) call.end(BAD_REQUEST);
      else found(service);
    });
  }
}

function beginResponse(stream: ServerHttp2Stream): void {
  stream.respond(
    {
      [constants.HTTP2_HEADER_STATUS]: '200',
      [constants.HTTP2_HEADER_CONTENT_TYPE]: CONTENT_TYPE,
      'grpc-accept-encoding': ENCODING,
    },
    { waitForTrailers: true },
  );
}

const UNKNOWN_SERVICE: GrpcStatus = { code: STATUS.notFound, message: 'There is no such service here.' };
const BAD_REQUEST: GrpcStatus = { code: STATUS.invalidArgument, message: 'The request is no HealthCheckRequest.' };
const TOO_MANY: GrpcStatus = {
  code: STATUS.resourceExhausted,
  message: `There are ${MAX_WATCHERS} watchers, the most allowed; use Check.`,
};
