/** Errors for a session over gRPC that could not be opened or that has ended. */
import { BridgeError } from '../../errors.ts';
import { SESSION_SERVICE } from '../../grpc/session-service.ts';
import { type GrpcStatus, STATUS, showStatusCode } from '../../grpc/status.ts';
import { codeOf, explainCode } from '../../http/client/network-error.ts';
import { toPrintable } from '../../printable.ts';

const MAX_SHOWN_LENGTH = 200;

const NO_HTTP2 =
  'it does not speak HTTP/2, which gRPC needs. Check the port; an HTTP/1.1 server is reached by its http:// or https:// URL';
const NO_TLS = 'it does not speak TLS on this port. Check the port, or use grpc://';

/** Explanations of codes for which the HTTP client gives unsuitable advice. */
const OWN_WORDS: ReadonlyMap<string, string> = new Map([
  ['EPROTO', NO_TLS],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['ECONNRESET', 'the connection was reset before it was complete. If it speaks TLS on this port, use grpcs://'],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', NO_HTTP2],
  ['ERR_HTTP2_ERROR', NO_HTTP2],
  ['ERR_HTTP2_SESSION_ERROR', NO_HTTP2],
]);

/** @param isConnected true if TCP and TLS were complete, so that what followed was not HTTP/2 */
export function connectError(name: string, cause: unknown, isConnected: boolean): BridgeError {
  const code = codeOf(cause);
  const known = code === undefined ? undefined : (OWN_WORDS.get(code) ?? explainCode(code));
  const what = known ?? (isConnected ? NO_HTTP2 : 'the connection failed');
  const shown = code === undefined ? '' : ` (${code})`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', `Cannot reach the server at ${name}: ${what}${shown}.`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}

/** For a TLS server that has not chosen HTTP/2, so that what it speaks is HTTP/1.1 at best. */
export function noHttp2Error(name: string): BridgeError {
  const message = `Cannot reach the server at ${name}: it does not offer HTTP/2 (ALPN h2), which gRPC needs. Check the port; an HTTP/1.1 server is reached by its https:// URL.`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', message);
}

export function connectTimeout(name: string, timeoutMs: number): BridgeError {
  const message = `The server at ${name} could not be connected to within ${timeoutMs} ms (the connect limit). Check the address, that it speaks gRPC there, and firewalls on the way, or raise --connect-timeout.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'connect', timeoutMs } });
}

/** For a response that is not gRPC, as that of a web server or of a proxy on the way. */
export function noGrpcError(name: string, httpStatus: number): BridgeError {
  const message = `The server at ${name} answered over HTTP/2 (status ${httpStatus}), but not with gRPC. Check the port, and that no proxy on the way answers in place of the server.`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', message, { data: { status: httpStatus } });
}

export interface EndContext {
  readonly name: string;
  /** True if the server has answered any request of MCP. */
  readonly hasServed: boolean;
  /** True if a credential was sent. */
  readonly wasAuthorized: boolean;
}

/**
 * Returns the error for a session that the server has ended with this status. A refusal also has the HTTP status of the
 * same meaning, by which refusals are told apart from other failures.
 */
export function statusError({ code, message }: GrpcStatus, context: EndContext): BridgeError {
  const { name, hasServed, wasAuthorized } = context;
  const said = toPrintable(message, MAX_SHOWN_LENGTH);
  const words = said === '' ? '' : ` It says: "${said}"${/[.!?\u2026]$/.test(said) ? '' : '.'}`;
  const status = showStatusCode(code);
  const data = { grpcStatus: code };
  switch (code) {
    case STATUS.unauthenticated: {
      // What the server says may repeat the credential that it refuses.
      const what = wasAuthorized ? 'does not accept the token it was given' : 'requires authorization';
      const wayOut = `Give it ${wasAuthorized ? 'another' : 'a'} token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header`;
      return new BridgeError('ERR_UPSTREAM_AUTH', `The server at ${name} ${what} (${status}). ${wayOut}.`, {
        data: { ...data, status: 401 },
      });
    }
    case STATUS.permissionDenied: {
      const what = `does not allow this${wasAuthorized ? ' with the token it was given' : ''} (${status})`;
      return new BridgeError('ERR_UPSTREAM_AUTH', `The server at ${name} ${what}.${words}`, {
        data: { ...data, status: 403 },
      });
    }
    case STATUS.unimplemented: {
      const what = `does not know the service ${SESSION_SERVICE} with its method Session (${status})`;
      const wayOut =
        'Check that it serves MCP as a stream of JSON-RPC messages: the typed service model_context_protocol.Mcp is another one, which mcp-portage does not speak';
      return new BridgeError('ERR_UPSTREAM_CONNECT', `The server at ${name} ${what}.${words} ${wayOut}.`, { data });
    }
    default: {
      const early = hasServed ? '' : ' before it answered anything';
      const what = code === STATUS.ok ? `ended the session${early}` : `ended the session${early} (${status})`;
      return new BridgeError('ERR_UPSTREAM_CLOSED', `The server at ${name} ${what}.${words}`, { data });
    }
  }
}

/** Returns the error for a session that broke without a status. */
export function breakError(cause: unknown, { name, hasServed }: EndContext): BridgeError {
  const code = codeOf(cause);
  const early = hasServed ? '' : ' before it answered anything';
  const shown = code === undefined ? '' : ` (${code})`;
  return new BridgeError('ERR_UPSTREAM_CLOSED', `The connection to the server at ${name} broke${early}${shown}.`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}

export function tooLargeError(name: string, maxMessageBytes: number): BridgeError {
  const message = `The server at ${name} sent a message of more than the ${maxMessageBytes} bytes allowed, which ends a session over gRPC; raise --max-message-bytes or let the server send less.`;
  return new BridgeError('ERR_UPSTREAM_TOO_LARGE', message);
}

/** @param problem completes "The server at … sent" */
export function protocolError(name: string, problem: string): BridgeError {
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `The server at ${name} sent ${problem}; the session was ended.`);
}

export function silenceError(name: string, pings: number): BridgeError {
  const message = `The server at ${name} did not answer ${pings} pings in a row; its connection was given up.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping' } });
}
