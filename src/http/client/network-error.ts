import { BridgeError, toBridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { isSocketUrl } from '../socket-addresses.ts';

/** On the way to whoever is connected to, which is the proxy where there is one: what happened, and the way out. */
const unconnected: ReadonlyMap<string, readonly [what: string, wayOut: string]> = new Map([
  ['ECONNREFUSED', ['nothing listens there', 'Check host and port, and that the server is running']],
  ['ENOTFOUND', ['its name cannot be resolved', 'Check the spelling, and DNS or VPN']],
  ['EAI_AGAIN', ['its name cannot be resolved right now', 'Check the network and DNS']],
  ['EHOSTUNREACH', ['no route leads to its address', 'Check the network or VPN']],
  ['ENETUNREACH', ['no route leads to its network', 'Check the network or VPN']],
  ['ENETDOWN', ['the network is down', 'Check the network or VPN']],
  ['ETIMEDOUT', ['it does not respond', 'Check the address, and firewalls on the way']],
]);

/** Why a socket of this machine cannot be connected to, and what to do about it. */
const unconnectedSocket: typeof unconnected = new Map([
  ['ENOENT', ['there is no such socket', 'Check its path, and that the server is running']],
  ['ECONNREFUSED', ['nothing listens there', 'The server that left the file has ended; start it']],
  ['EACCES', ['this user may not connect to it', 'The mode of the file, or of a folder above it, says who may']],
  ['ENOTSOCK', ['it is no socket', 'Check its path']],
  ['EPROTOTYPE', ['it is a socket of another kind', 'Check its path']],
]);

/** What happened, and the way out, by the code of the system or of TLS. */
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
 * A request that got no response, or none that can be read. Decided on codes alone; `cause` keeps the original.
 * `proxy`: through which the server is asked.
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

/** What a code of the system or of TLS says of a server that could not be connected to, and the way out. */
export function explainCode(code: string): string | undefined {
  const [what, wayOut] = unconnected.get(code) ?? [];
  return what === undefined ? explanations.get(code) : `${what}. ${wayOut}`;
}

/**
 * The hint for a server that expects TLS and resets the connection of a plain request. Completes a sentence without its
 * full stop.
 */
export function askForTls(url: URL, code: unknown): string {
  const secure = isSocketUrl(url) ? undefined : SECURE_SCHEMES.get(url.protocol);
  return secure !== undefined && code === 'ECONNRESET' ? `. If it speaks TLS on this port, use ${secure}` : '';
}

const SECURE_SCHEMES: ReadonlyMap<string, string> = new Map([
  ['http:', 'https://'],
  ['ws:', 'wss://'],
]);

/** The name of the proxy in messages, without its user name and password. */
export function nameProxy({ protocol, host }: URL): string {
  return `proxy ${protocol}//${host} of the environment`;
}

/** The error for what Node refuses to send, such as a header value with a line break. The value itself is not shown. */
export function toRequestError(thrown: unknown): BridgeError {
  const code = codeOf(thrown);
  if (code !== 'ERR_INVALID_CHAR' && code !== 'ERR_INVALID_HTTP_TOKEN') return toBridgeError(thrown);
  const message = 'A configured or forwarded header has a name or value that cannot be sent over HTTP.';
  return new BridgeError('ERR_UPSTREAM_HTTP', message, { cause: thrown });
}

/** An AggregateError of several addresses has the code of the first; its parts are looked at where it has none. */
export function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { code, errors } = cause as { code?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  return Array.isArray(errors) && errors.length > 0 ? codeOf(errors[0]) : undefined;
}

interface Finding {
  /** What came: "it is …". */
  readonly what: string;
  readonly wayOut: string;
}

const OVERFLOW: Finding = {
  what: 'headers without end, or larger than the 16 KiB that are read',
  wayOut: 'The server, or a proxy before it, has to send less',
};
const CHECK_URL = 'Check the port and the scheme';

/** How answers of other protocols begin, in hexadecimal digits. */
const beginnings: readonly (readonly [beginning: RegExp, Finding])[] = [
  // An alert or a handshake, of any version.
  [/^1[56]03/, { what: 'TLS', wayOut: 'Check the port, or use https://' }],
  [startsWith('SSH-'), { what: 'SSH', wayOut: CHECK_URL }],
  // The first frame of a server that takes nothing else: its settings.
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
/** The amount of an answer that is looked at. */
const LOOKED_AT = 32;

/** Is this an error code of Node's HTTP parser? */
export function isParserCode(code: string | undefined): code is string {
  return code?.startsWith('HPE_') === true;
}

/** An answer that is no HTTP, or none that is read to its end. What it says is not shown: it may be anything. */
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

/** The error of the parser holds the bytes it could not read; it may be the cause of another error. */
function beginningOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return '';
  const { rawPacket, cause: inner } = cause as { rawPacket?: unknown; cause?: unknown };
  if (Buffer.isBuffer(rawPacket)) return rawPacket.toString('hex', 0, LOOKED_AT);
  return beginningOf(inner);
}
