import type { Readable, Writable } from 'node:stream';
import type { ArrivingMessage } from '../../http/server/read-body.ts';
import type { ConnectionClient } from '../duplex/connection-peer.ts';
import { DuplexEndpoint, type DuplexEndpointOptions } from '../duplex/endpoint.ts';
import { LineConnection } from '../duplex/message-connection.ts';

export interface StdioEndpointOptions
  extends Omit<DuplexEndpointOptions, 'openConnection' | 'client' | 'unreadable' | 'maxWaitingBytes'> {
  readonly input: Readable;
  readonly output: Writable;
}

/** The one client of the process: the program at the other end of the pipes. */
const CLIENT: ConnectionClient = {
  transport: 'stdio',
  principal: undefined,
  environment: undefined,
  callerName: 'stdio',
  headers: undefined,
};

/**
 * The longest line, its line break included, that clients built with the official TypeScript SDK accept, as most hosts
 * are. At a longer line they end the connection, and with it all tools.
 */
export const MAX_LINE_BYTES = 10 * 1024 * 1024;

/** Never full, since the only client shares the memory with no other. */
const ALONE: ArrivingMessage = { holds: () => true };

/** Serves one client on a pair of pipes, with one message per line. */
export class StdioEndpoint extends DuplexEndpoint {
  constructor(options: StdioEndpointOptions) {
    super({
      ...options,
      client: CLIENT,
      unreadable: 'is-skipped',
      // No limit: the client could not reconnect, since the process has only one pair of pipes.
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      maxSentBytes: options.maxSentBytes ?? MAX_LINE_BYTES,
      openConnection: (listener) => new LineConnection({ ...options, arriving: ALONE }, listener),
    });
  }
}
