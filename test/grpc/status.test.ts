import { status as codes } from '@grpc/grpc-js';
import test from 'ava';
import fc from 'fast-check';
import { BridgeError, ERROR_CODES, type ErrorCode } from '../../src/errors.ts';
import { readStatus, STATUS, showStatusCode, statusOf, statusOfHttp, statusTrailers } from '../../src/grpc/status.ts';

test('codes are those of gRPC, and shown with their names', (t) => {
  for (const [name, code] of Object.entries(STATUS)) {
    const official = name.replaceAll(/[A-Z]/g, '_$&').toUpperCase();
    t.is((codes as unknown as Record<string, number>)[official], code);
    t.is(showStatusCode(code), `${code} ${official}`);
  }
  t.is(showStatusCode(99), '99');
});

test('clients are told what an error means to them', (t) => {
  const expected: Partial<Record<ErrorCode, number>> = {
    ERR_AUTH_REQUIRED: codes.UNAUTHENTICATED,
    ERR_AUTH_TOKEN: codes.UNAUTHENTICATED,
    ERR_AUTH_REQUEST: codes.UNAUTHENTICATED,
    ERR_AUTH_SCOPE: codes.PERMISSION_DENIED,
    ERR_AUTH_UNAVAILABLE: codes.UNAVAILABLE,
    ERR_HTTP_HOST: codes.PERMISSION_DENIED,
    ERR_HTTP_ORIGIN: codes.PERMISSION_DENIED,
    ERR_HTTP_HEADER: codes.INVALID_ARGUMENT,
    ERR_SESSION_LIMIT: codes.RESOURCE_EXHAUSTED,
    ERR_SESSION_BUSY: codes.RESOURCE_EXHAUSTED,
    ERR_SESSION_CLOSED: codes.UNAVAILABLE,
    ERR_UPSTREAM_EXITED: codes.UNAVAILABLE,
    ERR_UPSTREAM_SPAWN: codes.UNAVAILABLE,
    ERR_UPSTREAM_LOOP: codes.FAILED_PRECONDITION,
    ERR_WIRE_FRAME_TOO_LARGE: codes.RESOURCE_EXHAUSTED,
    ERR_WIRE_PARSE: codes.INVALID_ARGUMENT,
    ERR_INTERNAL: codes.INTERNAL,
  };
  for (const [code, status] of Object.entries(expected)) {
    t.is(statusOf(new BridgeError(code as ErrorCode, 'no')).code, status, code);
  }
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    t.not(statusOf(new BridgeError(code, 'no')).code, codes.OK, code);
  }
});

test('messages survive the trailers, whatever they contain', (t) => {
  const texts = fc.string({ unit: 'grapheme', maxLength: 200 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 16 }), texts, (code, message) => {
      const trailers = statusTrailers({ code, message });
      for (const value of Object.values(trailers)) t.regex(value, /^[\x20-\x7e]*$/);
      t.deepEqual(readStatus(trailers), { code, message });
    }),
  );
  t.deepEqual(readStatus({ 'grpc-status': '8', 'grpc-message': '100% full %zz %e2%82%ac' }), {
    code: 8,
    message: '100% full %zz €',
  });
  t.is(readStatus({}), undefined);
  t.is(readStatus({ 'grpc-status': 'ok' }), undefined);
  t.true((statusTrailers({ code: 3, message: 'é'.repeat(10_000) })['grpc-message'] ?? '').length < 8 * 1024);
});

test('a response that is not gRPC has the status that the protocol says', (t) => {
  t.is(statusOfHttp(401), codes.UNAUTHENTICATED);
  t.is(statusOfHttp(403), codes.PERMISSION_DENIED);
  t.is(statusOfHttp(404), codes.UNIMPLEMENTED);
  t.is(statusOfHttp(400), codes.INTERNAL);
  for (const passing of [429, 502, 503, 504]) t.is(statusOfHttp(passing), codes.UNAVAILABLE);
  t.is(statusOfHttp(500), codes.UNKNOWN);
});
