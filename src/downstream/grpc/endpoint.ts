import type { IncomingMessage } from 'node:http';
import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { type GrpcStatus, OK, STATUS, showStatusCode, statusOf } from '../../grpc/status.ts';
import { parseTimeout } from '../../grpc/timeout.ts';
import { endsBy } from '../../http/auth/callers.ts';
import type { BodyBudget } from '../../http/server/read-body.ts';
import type { Lane } from '../../relay/call.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { ConnectionClient } from '../duplex/connection-peer.ts';
import { type ClientEnd, DuplexEndpoint } from '../duplex/endpoint.ts';
import { MAX_QUEUED_BYTES } from '../http/response-writer.ts';
import type { GrpcCall } from './call.ts';
import { ClientGrpcStream, LAST_WORDS_MS } from './connection.ts';

/** Interval at which clients that have stopped reading are detected. */
const CHECK_MS = 5000;
/** `retryAfterMs` of a refusal because of too many streams. */
const RETRY_MS = 10_000;

export interface GrpcEndpointOptions {
  readonly sessions: SessionRegistry;
  readonly principalOf: (request: IncomingMessage) => string;
  readonly environmentOf: (request: IncomingMessage) => ConnectionClient['environment'];
  /** Metadata that passes to a remote server with every message of a stream, by the call that opened it. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  readonly maxMessageBytes: number;
  readonly maxJsonDepth: number;
  /** While a client is paused, how long a server may take nothing of what waits for it; 0: no limit. */
  readonly untakenTimeoutMs: number;
  /** Shared by all messages that are being read. */
  readonly bodies: BodyBudget;
  /** Limits of streams, of all clients and of one caller. Each stream may hold a session. */
  readonly maxConnections: number;
  readonly maxConnectionsPerCaller: number;
  readonly deps: Deps;
}

/** A client whose stream is open. */
interface Served {
  readonly callerName: string;
  readonly connection: ClientGrpcStream;
  readonly endpoint: DuplexEndpoint;
}

/**
 * Clients over gRPC: each stream is one client, in both eras at once as on a pipe. A stream that breaks ends its
 * session. When a client has ended its half, its open calls finish.
 */
export class GrpcEndpoint {
  readonly #options: GrpcEndpointOptions;
  readonly #served = new Set<Served>();
  #refusal: BridgeError | undefined;
  #stopChecking: (() => void) | undefined;

  constructor(options: GrpcEndpointOptions) {
    this.#options = options;
  }

  /** Serves the client of a call that was admitted. */
  serve(call: GrpcCall): void {
    if (call.isOver) return;
    const { principalOf, environmentOf, headersOf } = this.#options;
    const { request } = call;
    const callerName = principalOf(request);
    const refusal = this.#refusalFor(callerName);
    if (refusal !== undefined) return call.refuse(refusal);
    const timeoutMs = parseTimeout(request.headers['grpc-timeout']);
    if (timeoutMs === 'invalid') return call.end(BAD_TIMEOUT);
    const served = this.#open(call, {
      transport: 'grpc',
      principal: callerName,
      environment: environmentOf(request),
      callerName,
      headers: headersOf(request),
    });
    if (served === undefined) return;
    endsBy(request, (reason) => this.#leave(served, statusOf(reason), reason));
    const { clock, log } = this.#options.deps;
    const cancelDeadline =
      timeoutMs === undefined
        ? undefined
        : clock.after(timeoutMs, () => this.#leave(served, DEADLINE_EXCEEDED, CLIENT_GONE));
    this.#stopChecking ??= clock.every(CHECK_MS, () => this.#check());
    log.debug({ open: this.#served.size }, 'gRPC stream opened');
    void served.endpoint.ended.then((end) => this.#ended(served, end));
    call.stream.once('close', () => {
      cancelDeadline?.();
      // A reset ends both halves, and whoever waits for open calls of the client waits in vain.
      served.endpoint.close(CLIENT_GONE);
      this.#served.delete(served);
      if (this.#served.size === 0) this.#stopCheck();
    });
  }

  #refusalFor(callerName: string): BridgeError | undefined {
    if (this.#refusal !== undefined) return this.#refusal;
    const { maxConnections, maxConnectionsPerCaller } = this.#options;
    if (maxConnectionsPerCaller < maxConnections && this.#countOf(callerName) >= maxConnectionsPerCaller) {
      return tooMany(`This caller has ${maxConnectionsPerCaller} streams`, '--max-caller-sessions');
    }
    if (this.#served.size < maxConnections) return undefined;
    return tooMany(`All ${maxConnections} streams are taken`, '--max-sessions');
  }

  #countOf(callerName: string): number {
    let count = 0;
    for (const served of this.#served) if (served.callerName === callerName) count += 1;
    return count;
  }

  #open({ stream }: GrpcCall, client: ConnectionClient): Served | undefined {
    const { sessions, maxMessageBytes, maxJsonDepth, untakenTimeoutMs, bodies, deps } = this.#options;
    const { callerName } = client;
    let connection: ClientGrpcStream | undefined;
    const endpoint = new DuplexEndpoint({
      openConnection: (listener) => {
        const arriving = bodies.forConnection(callerName);
        const onFault = (status: GrpcStatus): void =>
          deps.log.warn(`a gRPC stream was ended (${showStatusCode(status.code)}): ${status.message}`);
        connection = new ClientGrpcStream({ stream, maxMessageBytes, arriving, onFault, clock: deps.clock }, listener);
        return connection;
      },
      client,
      sessions,
      maxMessageBytes,
      maxJsonDepth,
      maxWaitingBytes: MAX_QUEUED_BYTES,
      untakenTimeoutMs,
      heldTimeoutMs: untakenTimeoutMs,
      // The framing of HTTP/2 keeps web pages from having a browser send arbitrary bytes here.
      unreadable: 'is-skipped',
      deps,
    });
    if (connection === undefined) return undefined;
    const served = { callerName, connection, endpoint };
    this.#served.add(served);
    return served;
  }

  async #ended(served: Served, end: ClientEnd): Promise<void> {
    const { log } = this.#options.deps;
    switch (end.kind) {
      case 'input':
        // Open calls keep their usual time limits. A client that stops reading meanwhile is detected by `#check`.
        await served.endpoint.drain();
        return this.#leave(served, OK, CLIENT_GONE);
      case 'output':
        served.endpoint.close(CLIENT_GONE);
        return;
      case 'untaken': {
        const reason = untaken(end.bytes);
        log.warn({ code: reason.code }, `${reason.message} Its stream was ended.`);
        return this.#leave(served, statusOf(reason), reason);
      }
      case 'server':
      case 'unreadable':
      case 'crowded':
        return this.#leave(served, statusOf(end.reason), end.reason);
      default:
        assertNever(end);
    }
  }

  /** Answers open calls with the reason, then ends the stream. */
  #leave({ connection, endpoint }: Served, status: GrpcStatus, reason: BridgeError): void {
    endpoint.close(reason);
    connection.end(status);
  }

  #check(): void {
    const nowMs = this.#options.deps.clock.now();
    for (const { connection } of [...this.#served]) {
      if (!connection.hasStoppedReading(nowMs)) continue;
      this.#options.deps.log.info('a client over gRPC stopped reading; its stream was ended');
      connection.cut();
    }
  }

  #stopCheck(): void {
    this.#stopChecking?.();
    this.#stopChecking = undefined;
  }

  // ---- the end

  /** Rejects new streams with this reason. */
  refuse(reason: BridgeError): void {
    this.#refusal ??= reason;
  }

  /** Ends all streams. Resolves when what was written to them has left, or after LAST_WORDS_MS. */
  close(reason: BridgeError): Promise<void> {
    this.refuse(reason);
    const all = [...this.#served];
    for (const served of all) this.#leave(served, statusOf(reason), reason);
    this.#stopCheck();
    return Promise.race([
      Promise.all(all.map(({ connection }) => connection.flush())).then(() => {}),
      new Promise<void>((resolve) => void this.#options.deps.clock.after(LAST_WORDS_MS, resolve)),
    ]);
  }
}

const CLIENT_GONE = new BridgeError('ERR_SESSION_CLOSED', 'The client has ended its stream.');
const DEADLINE_EXCEEDED: GrpcStatus = {
  code: STATUS.deadlineExceeded,
  message: 'The deadline of the stream has passed; give a session a later one, or none.',
};
const BAD_TIMEOUT: GrpcStatus = {
  code: STATUS.invalidArgument,
  message: 'The header grpc-timeout cannot be read; expected at most 8 digits and a unit, as in 30S.',
};

function untaken(bytes: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server reads none of the ${bytes} bytes that the client has sent.`,
  );
}

function tooMany(what: string, option: string): BridgeError {
  const message = `${what}, the most allowed; end one, try again later, or raise ${option}.`;
  return new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: RETRY_MS });
}
