import type { StreamAddress } from '../../../src/config/server.ts';
import {
  type ByteStreamConnectorOptions,
  createByteStreamConnector,
} from '../../../src/upstream/byte-stream/connector.ts';
import { createTestDeps } from '../../process/collected-log.ts';

export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** A dialer to a byte stream, and what it says in the log. */
export function dialByteStream(address: StreamAddress, options: Partial<ByteStreamConnectorOptions> = {}) {
  const { deps, entries } = createTestDeps();
  const dialer = createByteStreamConnector({
    address,
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    connectTimeoutMs: 10_000,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    failureLevel: 'warn',
    deps,
    ...options,
  });
  return { dialer, entries };
}
