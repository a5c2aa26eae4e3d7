import { BridgeError, toBridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { isSocketUrl } from '../socket-addresses.ts';

/** Failures to connect to the server, or to its proxy if there is one, by error code. */
const unconnected: ReadonlyMap<string, readonly [what: string, wayOut: string]> = new Map([
  ['ECONNREFUSED', ['nothing listens there', 'Check host and port, and that the server is running']],
  ['ENOTFOUND', ['its name cannot be resolved', 'Check the spelling, and DNS or VPN']],
  ['EAI_AGAIN', ['its name cannot be resolved right now', 'Check the network and DNS']],
  ['EHOSTUNREACH', ['no route leads to its address', 'Check the network or VPN']],
  ['ENETUNREACH', ['no route leads to its network', 'Check the network or VPN']],
  ['ENETDOWN', ['the network is down', 'Check the network or VPN']],
  ['ETIMEDOUT', ['it does not respond', 'Check the address, and firewalls on the way']],
]);

/** Failures to connect to a socket of this machine, by error code. */
const unconnectedSocket: typeof unconnected = new Map([
  ['ENOENT', ['there is no such socket', 'Check its path, and that the server is running']],
  ['ECONNREFUSED', ['nothing listens there', 'The server that left the file has ended; start it']],
  ['EACCES', ['this user may not connect to it', 'The mode of the file, or of a folder above it, says who may']],
  ['ENOTSOCK', ['it is no socket', 'Check its path']],
  ['EPROTOTYPE', ['it is a socket of another kind', 'Check its path']],
]);

/** Explanations of other failures, by the error code of the system or of TLS. */
const explanations: ReadonlyMap<string, string> = new Map([
  ['ECONNRESET', 'the connection was reset before an answer came; whether the message was processed is not known'],
  ['EPIPE', 'the connection was closed before the whole message was sent'],
  ['EPROTO', 'it does not speak TLS on this port. Check the port, or use the scheme without TLS'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS on this port. Check the port, or use the scheme without TLS'],
  [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'its certificate is self-signed. If you trust it, give it (or its authority) with --ca',
  ],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate comes from an authority that is not trusted here; give it with --ca'],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'its certificate comes from an authority that is not trusted here, or the server does not send the chain; give the authority with --ca',
  ],
  [
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'its certificate comes from an authority that is not trusted here; give it with --ca',
  ],
  ['UNABLE_TO_GET_ISSUER_CERT', 'its certificate comes from an authority that is not trusted here; give it with --ca'],
  ['CERT_HAS_EXPIRED', 'its certificate has expired. The server needs a new one (or check the clock of this machine)'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet. Check the clock of this machine'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name. Use the name the certificate was made for'],
  [
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    'it wants a client certificate; give one with --client-cert and --client-key',
  ],
  [
    'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
    'the TLS handshake failed; it may want a client certificate (--client-cert, --client-key)',
  ],
]);

/**
 * Returns the error for a request without a readable response. Only the error code decides; `cause` keeps the original
 * error. `proxy` is the proxy that the request went through.
 */
export function toConnectError(url: URL, cause: unknown, proxy?: URL): BridgeError {
  const code = codeOf(cause);
  if (isParserCode(code)) return unreadableAnswer(url, code, cause);
  const shown = code === undefined ? '' : ` (${code})`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', `Cannot reach the server at ${explain(url, code, shown, proxy)}.`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}

function explain(url: URL, code: string | undefined, shown: string, proxy: URL | undefined): string {
  const known = isSocketUrl(url) ? unconnectedSocket : unconnected;
  const [what, wayOut] = (code && known.get(code)) || [];
  if (what !== undefined && proxy !== undefined) {
    return `${showUrl(url)} through the ${nameProxy(proxy)}: ${what}${shown}. Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or except the server with NO_PROXY`;
  }
  if (what !== undefined) return `${showUrl(url)}: ${what}. ${wayOut}${shown}`;
  return `${showUrl(url)}: ${(code && explanations.get(code)) ?? 'the connection failed'}${shown}${askForTls(url, code)}`;
}

/** Explains the error code of a failed connection and gives the way out; undefined for an unknown code. */
export function explainCode(code: string): string | undefined {
  const [what, wayOut] = unconnected.get(code) ?? [];
  return what === undefined ? explanations.get(code) : `${what}. ${wayOut}`;
}

/**
 * Returns a hint for a server that may expect TLS, because it has reset the connection of an unencrypted request; empty
 * for other errors. The hint continues a sentence that has no full stop yet.
 */
export function askForTls(url: URL, code: unknown): string {
  const secure = isSocketUrl(url) ? undefined : SECURE_SCHEMES.get(url.protocol);
  return secure !== undefined && code === 'ECONNRESET' ? `. If it speaks TLS on this port, use ${secure}` : '';
}

const SECURE_SCHEMES: ReadonlyMap<string, string> = new Map([
  ['http:', 'https://'],
  ['ws:', 'wss://'],
]);

/** Returns the name of the proxy for messages, without user name and password. */
export function nameProxy({ protocol, host }: URL): string {
  return `proxy ${protocol}//${host} of the environment`;
}

/**
 * Returns the error for a request that Node cannot send, for example with a line break in a header value. The message
 * does not contain the value.
 */
export function toRequestError(thrown: unknown): BridgeError {
  const code = codeOf(thrown);
  if (code !== 'ERR_INVALID_CHAR' && code !== 'ERR_INVALID_HTTP_TOKEN') return toBridgeError(thrown);
  const message = 'A configured or forwarded header has a name or value that cannot be sent over HTTP.';
  return new BridgeError('ERR_UPSTREAM_HTTP', message, { cause: thrown });
}

/**
 * Returns the error code of a failure. An AggregateError of several addresses usually has the code of the first one; if
 * it has none, its first error is examined.
 */
export function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { code, errors } = cause as { code?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  return Array.isArray(errors) && errors.length > 0 ? codeOf(errors[0]) : undefined;
}

interface Finding {
  /** Completes a sentence that begins with "it is". */
  readonly what: string;
  readonly wayOut: string;
}

const OVERFLOW: Finding = {
  what: 'headers without end, or larger than the 16 KiB that are read',
  wayOut: 'The server, or a proxy before it, has to send less',
};
const CHECK_URL = 'Check the port and the scheme';

/** The beginnings of answers in other protocols, as patterns of hexadecimal digits. */
const beginnings: readonly (readonly [beginning: RegExp, Finding])[] = [
  // A TLS alert or handshake record, of any version.
  [/^1[56]03/, { what: 'TLS', wayOut: 'Check the port, or use https://' }],
  [startsWith('SSH-'), { what: 'SSH', wayOut: CHECK_URL }],
  // The SETTINGS frame that a server sends first if it speaks only HTTP/2.
  [/^0000..0400/, { what: 'HTTP/2', wayOut: 'The server has to speak HTTP/1.1, too' }],
  [
    /^(?:7b|5b)/,
    { what: 'JSON without HTTP around it', wayOut: 'Check the port; a server on a bare socket is not served' },
  ],
  [
    startsWith('HTTP/'),
    { what: 'HTTP with a mistake in its headers', wayOut: 'The server, or a proxy before it, has to be repaired' },
  ],
  [/^(?:09|0a|0d|[2-6].|7[0-9a-e])+$/, { what: 'text that is no HTTP', wayOut: CHECK_URL }],
];
const BYTES: Finding = { what: 'bytes that are no HTTP', wayOut: CHECK_URL };
/** The number of bytes of an answer that are examined. */
const LOOKED_AT = 32;

/** True for the error codes of Node's HTTP parser. */
export function isParserCode(code: string | undefined): code is string {
  return code?.startsWith('HPE_') === true;
}

/**
 * Returns the error for an answer that is not HTTP, or whose headers are too long. The message does not quote the
 * answer, which may contain anything.
 */
export function unreadableAnswer(url: URL, code: string, cause: unknown): BridgeError {
  const { what, wayOut } = code === 'HPE_HEADER_OVERFLOW' ? OVERFLOW : finding(beginningOf(cause));
  const message = `The server at ${showUrl(url)} answered with what cannot be read as HTTP: it is ${what}. ${wayOut} (${code}).`;
  return new BridgeError('ERR_UPSTREAM_UNREADABLE', message, { cause, data: { cause: code } });
}

function startsWith(text: string): RegExp {
  return new RegExp(`^${Buffer.from(text).toString('hex')}`);
}

function finding(beginning: string): Finding {
  return beginnings.find(([pattern]) => pattern.test(beginning))?.[1] ?? BYTES;
}

/**
 * Returns the beginning of the unreadable answer in hexadecimal digits. The parser's error, which may be the cause of
 * another error, holds the bytes that it could not read.
 */
function beginningOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return '';
  const { rawPacket, cause: inner } = cause as { rawPacket?: unknown; cause?: unknown };
  if (Buffer.isBuffer(rawPacket)) return rawPacket.toString('hex', 0, LOOKED_AT);
  return beginningOf(inner);
}
