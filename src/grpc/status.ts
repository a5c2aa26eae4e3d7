/** Status codes of gRPC, and how they are sent in trailers. [gRPC, Status codes; gRPC over HTTP2] */
import type { IncomingHttpHeaders } from 'node:http2';
import type { BridgeError, ErrorCode } from '../errors.ts';

export const STATUS = {
  ok: 0,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export type StatusCode = (typeof STATUS)[keyof typeof STATUS];

/** The end of a call. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

export const OK: GrpcStatus = { code: STATUS.ok, message: '' };

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS).map(([name, code]) => [code, name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()]),
);

/** Shows a status with its name, as `16 UNAUTHENTICATED`. */
export function showStatusCode(code: number): string {
  const name = NAMES.get(code);
  return name === undefined ? String(code) : `${code} ${name}`;
}

/** Codes whose HTTP status has another meaning in gRPC. */
const CODES: ReadonlyMap<ErrorCode, StatusCode> = new Map([
  ['ERR_SESSION_LIMIT', STATUS.resourceExhausted],
  ['ERR_SESSION_BUSY', STATUS.resourceExhausted],
  ['ERR_UPSTREAM_LOOP', STATUS.failedPrecondition],
  ['ERR_AUTH_REQUEST', STATUS.unauthenticated],
]);

const BY_HTTP_STATUS: ReadonlyMap<number, StatusCode> = new Map([
  [400, STATUS.invalidArgument],
  [401, STATUS.unauthenticated],
  [403, STATUS.permissionDenied],
  [404, STATUS.notFound],
  [413, STATUS.resourceExhausted],
  [502, STATUS.unavailable],
  [503, STATUS.unavailable],
  [504, STATUS.unavailable],
]);

/** Returns the status that tells a client of this error. */
export function statusOf({ code, message, audiences }: BridgeError): GrpcStatus {
  return { code: CODES.get(code) ?? BY_HTTP_STATUS.get(audiences.http ?? 0) ?? STATUS.internal, message };
}

/**
 * Status of a response that is not gRPC, such as the error page of a proxy. [gRPC, HTTP to gRPC Status Code Mapping]
 */
export function statusOfHttp(httpStatus: number): StatusCode {
  switch (httpStatus) {
    case 400:
      return STATUS.internal;
    case 401:
      return STATUS.unauthenticated;
    case 403:
      return STATUS.permissionDenied;
    case 404:
      return STATUS.unimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return STATUS.unavailable;
    default:
      return STATUS.unknown;
  }
}

/** Longest text that is sent. Trailers have a limit at the other end, often of 8 KiB. */
const MAX_MESSAGE_LENGTH = 1024;

export function statusTrailers({ code, message }: GrpcStatus): Record<string, string> {
  const status = { 'grpc-status': String(code) };
  return message === '' ? status : { ...status, 'grpc-message': encodeMessage(message.slice(0, MAX_MESSAGE_LENGTH)) };
}

/** Escapes everything but printable ASCII, and the percent sign. */
function encodeMessage(message: string): string {
  const bytes = Buffer.from(message);
  return bytes.reduce((text, byte) => {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    return text + (isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`);
  }, '');
}

/** Reads the status in trailers, or in the headers of a response without messages; undefined if there is none. */
export function readStatus(trailers: IncomingHttpHeaders): GrpcStatus | undefined {
  const code = trailers['grpc-status'];
  if (typeof code !== 'string' || !/^\d{1,3}$/.test(code)) return undefined;
  const message = trailers['grpc-message'];
  return { code: Number(code), message: typeof message === 'string' ? decodeMessage(message) : '' };
}

/** Takes invalid escapes literally, as the specification wants. */
function decodeMessage(text: string): string {
  const bytes: number[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const escaped = /^%([0-9a-f]{2})/i.exec(text.slice(index, index + 3))?.[1];
    if (escaped === undefined) bytes.push(...Buffer.from(text.charAt(index)));
    else {
      bytes.push(Number.parseInt(escaped, 16));
      index += 2;
    }
  }
  return Buffer.from(bytes).toString('utf8');
}
