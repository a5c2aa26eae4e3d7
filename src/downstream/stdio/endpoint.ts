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

/** Whoever holds the pipes is the one client there is. */
const CLIENT: ConnectionClient = {
  transport: 'stdio',
  principal: undefined,
  environment: undefined,
  callerName: 'stdio',
  headers: undefined,
};

/**
 * The longest line, with its line break, that clients of the official TypeScript SDK take: at a longer one they end the
 * connection, and with it all tools. Hosts are made of it.
 */
export const MAX_LINE_BYTES = 10 * 1024 * 1024;

/** There is nobody whose messages it could keep out. */
const ALONE: ArrivingMessage = { holds: () => true };

/** One client on a pair of pipes: a message a line. */
export class StdioEndpoint extends DuplexEndpoint {
  constructor(options: StdioEndpointOptions) {
    super({
      ...options,
      client: CLIENT,
      unreadable: 'is-skipped',
      // It has one pair of pipes in its life.
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      maxSentBytes: options.maxSentBytes ?? MAX_LINE_BYTES,
      openConnection: (listener) => new LineConnection({ ...options, arriving: ALONE }, listener),
    });
  }
}
