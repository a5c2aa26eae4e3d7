/** Messages of the service `grpc.health.v1.Health`. [gRPC Health Checking Protocol] */
import { FieldReader } from './json-rpc-line.ts';
import { HEADER_BYTES } from './message-splitter.ts';

export const SERVING_STATUS = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;
export type ServingStatus = (typeof SERVING_STATUS)[keyof typeof SERVING_STATUS];

/** `HealthCheckResponse.status = 1` is an enum. */
const STATUS_TAG = 1 << 3;

/** Returns the name of the service that a request is about; undefined if the bytes are no such request. */
export function decodeHealthRequest(message: Buffer): string | undefined {
  const reader = new FieldReader(message);
  let service = '';
  while (reader.hasMore) {
    const field = reader.next();
    if (field === undefined) return undefined;
    if (field.number === 1 && field.bytes !== undefined) service = field.bytes.toString('utf8');
  }
  return service;
}

/** Encodes a response as one gRPC message, with its length prefix. */
export function encodeHealthResponse(status: ServingStatus): Buffer {
  const message = Buffer.alloc(HEADER_BYTES + 2);
  message.writeUInt32BE(2, 1);
  message[HEADER_BYTES] = STATUS_TAG;
  message[HEADER_BYTES + 1] = status;
  return message;
}
