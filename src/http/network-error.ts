import { BridgeError } from '../errors.ts';
import { showUrl } from './shown-url.ts';
import { isParserCode, unreadableAnswer } from './unreadable-answer.ts';

/** What happened, and the way out, by the code of the system or of TLS. */
const explanations: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there. Check host and port, and that the server is running'],
  ['ENOTFOUND', 'its name cannot be resolved. Check the spelling, and DNS or VPN'],
  ['EAI_AGAIN', 'its name cannot be resolved right now. Check the network and DNS'],
  ['EHOSTUNREACH', 'no route leads to its address. Check the network or VPN'],
  ['ENETUNREACH', 'no route leads to its network. Check the network or VPN'],
  ['ENETDOWN', 'the network is down'],
  ['ETIMEDOUT', 'it does not respond. Check the address, and firewalls on the way'],
  ['ECONNRESET', 'the connection was reset before an answer came; whether the message was processed is not known'],
  ['EPIPE', 'the connection was closed before the whole message was sent'],
  ['EPROTO', 'it does not speak TLS on this port. Check the port, or use http://'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS on this port. Check the port, or use http://'],
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

/** A request that got no response, or none that can be read. Decided on codes alone; `cause` keeps the original. */
export function toConnectError(url: URL, cause: unknown): BridgeError {
  const code = codeOf(cause);
  if (isParserCode(code)) return unreadableAnswer(url, code, cause);
  const reason = (code && explanations.get(code)) ?? 'the connection failed';
  const shown = code === undefined ? '' : ` (${code})`;
  return new BridgeError('ERR_UPSTREAM_CONNECT', `Cannot reach the server at ${showUrl(url)}: ${reason}${shown}.`, {
    cause,
    data: code === undefined ? {} : { cause: code },
  });
}

/** An AggregateError of several addresses has the code of the first; its parts are looked at where it has none. */
export function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { code, errors } = cause as { code?: unknown; errors?: unknown };
  if (typeof code === 'string') return code;
  return Array.isArray(errors) && errors.length > 0 ? codeOf(errors[0]) : undefined;
}
