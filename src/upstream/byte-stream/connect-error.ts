/** Errors for a byte stream that could not be opened or that has ended. */
import { BridgeError } from '../../errors.ts';
import { codeOf, explainCode } from '../../http/client/network-error.ts';

/**
 * Explanations of codes for which the HTTP client gives unsuitable advice: a Unix socket is not a host, and there is no
 * URL scheme to change to `http`.
 */
const OWN_WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such socket. Check the path, and that the server is running'],
  ['EACCES', 'the file does not let this user connect. Check its mode and that of its folder'],
  ['EPERM', 'the file does not let this user connect. Check its mode and that of its folder'],
  ['ENOTSOCK', 'the file is no socket. Check the path'],
  ['EPROTOTYPE', 'the socket is of another kind than a stream. Check the path'],
  ['EPROTO', 'it does not speak TLS on this port. Check the port, or use tcp://'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS on this port. Check the port, or use tcp://'],
  ['ECONNRESET', 'the connection was reset before it was complete. Check the port, and whether TLS is spoken there'],
]);

export function connectError(name: string, cause: unknown): BridgeError {
  const code = codeOf(cause);
  const what = (code && (OWN_WORDS.get(code) ?? explainCode(code))) ?? 'the connection failed';
  const shown = code === undefined ? '' : ` (${code})`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', `Cannot reach the server at ${name}: ${what}${shown}.`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}

export function connectTimeout(name: string, timeoutMs: number): BridgeError {
  const message = `The server at ${name} could not be connected to within ${timeoutMs} ms (the connect limit). Check the address, and firewalls on the way, or raise --connect-timeout.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'connect', timeoutMs } });
}

export interface EndContext {
  readonly name: string;
  /** Undefined if the server closed the connection without an error. */
  readonly cause: unknown;
  /** True if the server has answered any request. */
  readonly hasServed: boolean;
  /** Lines from the server that were not messages. */
  readonly noise: readonly string[];
}

export function endError({ name, cause, hasServed, noise }: EndContext): BridgeError {
  const code = codeOf(cause);
  const early = hasServed ? '' : ' before it answered anything';
  const what =
    cause === undefined
      ? `The server at ${name} closed the connection${early}.`
      : `The connection to the server at ${name} broke${early}${code === undefined ? '' : ` (${code})`}.`;
  // A line that looks like JSON may be part of a message with private content, so it is not shown.
  const words = noise.filter((line) => !/^[[{]/.test(line));
  const said = hasServed || words.length === 0 ? '' : ` What it said was not MCP: ${words.join(' | ')}.`;
  const hint = words[0]?.startsWith('HTTP/') === true ? ' It speaks HTTP: give its http:// or https:// URL.' : '';
  return new BridgeError('ERR_UPSTREAM_CLOSED', `${what}${said}${hint}`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}
