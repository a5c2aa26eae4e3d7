/** Logs clients that connect and leave and, at the debug level, each call. */
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import type { ErrorCode } from '../errors.ts';
import { LISTEN } from '../mcp/vocabulary/methods.ts';
import { ERAS } from '../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../printable.ts';
import {
  type CallEnding,
  type CallOutcome,
  isDuplex,
  type ObservedCall,
  type ObservedClient,
  type ObservedServer,
  type Observer,
  type OnCallEnded,
  type OnClientLeft,
  type Transport,
} from '../relay/observer.ts';
import { RecentClients } from './recent-clients.ts';

export interface ClientLogOptions {
  readonly log: Logger;
  readonly clock: Clock;
}

/** If calls are not logged, one of this many is read to see which client makes it. */
const CALLS_BETWEEN = 16;
/** Minimum time between two such calls, since reading one costs as much as a small call. */
const PAUSE_MS = 50;
/** Longer names of peers are cut. */
const MAX_LENGTH = 100;

const TRANSPORTS: Readonly<Record<Transport, string>> = {
  stdio: 'stdio',
  'byte-stream': 'a byte stream',
  mqtt: 'MQTT',
  websocket: 'WebSocket',
  grpc: 'gRPC',
  'streamable-http': 'Streamable HTTP',
  'http-sse': 'HTTP+SSE',
  aggregate: 'the aggregate',
  replay: 'a replay',
};

/**
 * Logs a line at `info` when a client connects or leaves, and one at `debug` for each call. Modern clients over HTTP do
 * not connect, so they are logged when they call a server for the first time in a while.
 */
export class ClientLog implements Observer {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #recent: RecentClients;
  readonly #tellsCalls: boolean;
  /** Calls that were skipped since the latest one that was read. */
  #skipped = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor({ log, clock }: ClientLogOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#recent = new RecentClients(clock);
    this.#tellsCalls = log.isLevelEnabled('debug');
  }

  /** Samples calls unless all are logged: reading each one to see its client would slow all of them down. */
  get seesCalls(): boolean {
    if (this.#tellsCalls) return true;
    this.#skipped = (this.#skipped + 1) % CALLS_BETWEEN;
    return this.#skipped === 1 && this.#hasPaused();
  }

  #hasPaused(): boolean {
    const nowMs = this.#clock.now();
    if (nowMs - this.#lookedAtMs < PAUSE_MS) return false;
    this.#lookedAtMs = nowMs;
    return true;
  }

  opened(call: ObservedCall): OnCallEnded | undefined {
    const isNew = isOfCallsOnly(call.client) && this.#log.isLevelEnabled('info') && this.#isNew(call.client);
    // A subscription ends only when its client leaves, which may be tomorrow.
    const isNamedNow = isNew && call.method === LISTEN;
    if (isNamedNow) this.#tellCalls(call.client, undefined);
    const isNamedAtEnd = isNew && !isNamedNow;
    const isTold = this.#tellsCalls;
    if (!isNamedAtEnd && !isTold) return undefined;
    return (ending) => {
      // The server's protocol is known by the end of the call.
      if (isNamedAtEnd) this.#tellCalls(call.client, ending.server);
      if (isTold) this.#tellCall(call, ending);
    };
  }

  connected(client: ObservedClient, server: ObservedServer | undefined): OnClientLeft | undefined {
    if (!this.#log.isLevelEnabled('info')) return undefined;
    const fields = fieldsOf(client, server);
    const who = nameOf(client);
    const where = shown(client.server);
    this.#log.info(fields, `${who} connected to ${where} by ${wayOf(client, server)}`);
    const sinceMs = this.#clock.now();
    return (reason: ErrorCode) => {
      const ms = Math.round(this.#clock.now() - sinceMs);
      // ERR_SESSION_CLOSED is the normal way for a client to leave.
      const why = reason === 'ERR_SESSION_CLOSED' ? '' : ` (${reason})`;
      this.#log.info({ ...fields, ms, code: reason }, `${who} left ${where} after ${showTime(ms)}${why}`);
    };
  }

  refused(): void {}

  used(): void {}

  #isNew(client: ObservedClient): boolean {
    const seen = this.#recent.see(client);
    if (seen === 'too many') {
      const message = 'more clients call than can be told apart; further ones are not named in the log for a while';
      this.#log.info({ server: client.server }, message);
    }
    return seen === 'new';
  }

  #tellCalls(client: ObservedClient, server: ObservedServer | undefined): void {
    const message = `${nameOf(client)} calls ${shown(client.server)} by ${wayOf(client, server)}`;
    this.#log.info(fieldsOf(client, server), message);
  }

  #tellCall({ client, method, tool, requestBytes }: ObservedCall, { outcome, bytes, durationMs }: CallEnding): void {
    const fields = {
      client: client.name && shown(client.name),
      server: client.server,
      method: shown(method),
      tool: tool && shown(tool),
      outcome: outcome.kind,
      code: 'code' in outcome ? outcome.code : undefined,
      ms: Math.round(durationMs * 1000) / 1000,
      requestBytes,
      bytes,
    };
    const what = tool === undefined ? shown(method) : `${shown(method)} ${shown(tool)}`;
    const message = `${what} ${showOutcome(outcome)} after ${showTime(durationMs)}, ${bytes} bytes`;
    this.#log.debug(fields, message);
  }
}

/** Returns true for a client that does not connect and is known only by its calls. */
function isOfCallsOnly({ era, transport }: ObservedClient): boolean {
  return ERAS[era].begins === 'any-request' && !isDuplex(transport);
}

function fieldsOf(client: ObservedClient, server: ObservedServer | undefined): object {
  return {
    client: client.name && shown(client.name),
    clientVersion: client.version && shown(client.version),
    transport: client.transport,
    revision: client.revision && shown(client.revision),
    server: client.server,
    ...(server && { serverTransport: server.transport, serverEra: server.era, serverRevision: server.revision }),
  };
}

function nameOf({ name, version }: ObservedClient): string {
  const shownName = shown(name ?? '');
  if (shownName === '') return 'a client without a name';
  return version === undefined ? shownName : `${shownName} ${shown(version)}`.trimEnd();
}

/** Describes the protocols on both sides: how the client speaks, and how its messages reach the server. */
function wayOf(client: ObservedClient, server: ObservedServer | undefined): string {
  const spoken = [TRANSPORTS[client.transport], ...(client.revision === undefined ? [] : [shown(client.revision)])];
  if (server === undefined) return spoken.join(' ');
  const over = `over ${TRANSPORTS[server.transport]}`;
  const isSame = server.era === client.era && (server.revision ?? client.revision) === client.revision;
  const becomes = isSame ? 'passed on' : `translated to ${shown(server.revision ?? `the ${server.era} era`)}`;
  return `${spoken.join(' ')}, ${becomes} ${over}`;
}

function showOutcome(outcome: CallOutcome): string {
  switch (outcome.kind) {
    case 'answered':
      return 'was answered';
    case 'tool-error':
      return 'ran and failed (isError)';
    case 'error':
      return `got an error of the server${outcome.code === undefined ? '' : ` (${outcome.code})`}`;
    case 'cancelled':
      return 'was canceled';
    case 'failed':
      return `failed (${outcome.code})`;
  }
}

function showTime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function shown(word: string): string {
  return toPrintable(word, MAX_LENGTH);
}
