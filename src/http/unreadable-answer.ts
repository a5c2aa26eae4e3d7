import { BridgeError } from '../errors.ts';
import { showUrl } from './shown-url.ts';

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

/** How answers begin that are no HTTP, as hexadecimal digits, by who sends them. */
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

/** The parser keeps what it could not read; who passes its error on may keep that error. */
function beginningOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return '';
  const { rawPacket, cause: inner } = cause as { rawPacket?: unknown; cause?: unknown };
  if (Buffer.isBuffer(rawPacket)) return rawPacket.toString('hex', 0, LOOKED_AT);
  return beginningOf(inner);
}
