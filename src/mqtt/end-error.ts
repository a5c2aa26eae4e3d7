import { assertNever, BridgeError } from '../errors.ts';
import { codeOf, explainCode } from '../http/client/network-error.ts';
import { toPrintable } from '../printable.ts';
import { describeReason, isAboutCredentials, REASONS } from './reason-codes.ts';

/**
 * How a connection to a broker has ended, other than by being closed here.
 * - `unreachable`: it could not be opened.
 * - `slow`: it was not complete within the time limit.
 * - `refused`: the broker has refused it with this reason code.
 * - `dismissed`: the broker has ended it with this reason code.
 * - `broken`: it broke, or the broker closed it without a word.
 * - `silent`: the broker did not answer a ping.
 * - `malformed`: the broker sent something that MQTT 5 does not allow here.
 */
export type MqttEnd =
  | { readonly kind: 'unreachable' | 'broken'; readonly cause: unknown }
  | { readonly kind: 'slow' | 'silent'; readonly afterMs: number }
  | { readonly kind: 'refused' | 'dismissed'; readonly reasonCode: number; readonly reason: string | undefined }
  | { readonly kind: 'malformed'; readonly problem: string };

/** The names of the options by which users can correct something. */
export interface OptionNames {
  /** The place of the account, as the end of a sentence: `with --user and --password`. */
  readonly account: string;
  readonly ca: string;
  /** Undefined if none can be shown. */
  readonly clientCertificate: string | undefined;
  /** Undefined if the limit cannot be changed. */
  readonly connectTimeout: string | undefined;
}

/** The way in which the broker was connected to. */
export interface Approach {
  readonly tls: 'on' | 'off';
  readonly hasAccount: boolean;
  readonly options: OptionNames;
}

const MAX_REASON_LENGTH = 200;

/** @param name the broker, as it may be shown */
export function endError(name: string, end: MqttEnd, approach: Approach): BridgeError {
  switch (end.kind) {
    case 'unreachable': {
      const code = codeOf(end.cause);
      const what = explain(code, approach);
      const data = code === undefined ? {} : { cause: code };
      const message = `Cannot reach the broker at ${name}: ${what}${code === undefined ? '' : ` (${code})`}.`;
      return new BridgeError('ERR_UPSTREAM_CONNECT', message, { cause: end.cause, data });
    }
    case 'slow': {
      const { connectTimeout } = approach.options;
      const orRaise = connectTimeout === undefined ? '' : `, or raise ${connectTimeout}`;
      const message = `The broker at ${name} did not accept the connection within ${end.afterMs} ms (the connect limit). Check that it speaks MQTT at this port, and firewalls on the way${orRaise}.`;
      return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'connect', timeoutMs: end.afterMs } });
    }
    case 'refused':
      return refusal(name, end, approach);
    case 'dismissed': {
      const said = `${describeReason(end.reasonCode)}${quote(end.reason)}`;
      return new BridgeError('ERR_UPSTREAM_CLOSED', `The broker at ${name} ended the connection: ${said}.`, {
        data: { reasonCode: end.reasonCode },
      });
    }
    case 'broken': {
      const code = codeOf(end.cause);
      const message = `The connection to the broker at ${name} broke${code === undefined ? '' : ` (${code})`}.`;
      return new BridgeError('ERR_UPSTREAM_CLOSED', message, {
        cause: end.cause,
        data: code === undefined ? {} : { cause: code },
      });
    }
    case 'silent': {
      const message = `The broker at ${name} did not answer a ping within ${end.afterMs} ms; its connection was given up.`;
      return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'ping', timeoutMs: end.afterMs } });
    }
    case 'malformed': {
      const message = `The broker at ${name} sent ${end.problem}, so the connection was closed. Check that MQTT 5 is spoken at this port.`;
      return new BridgeError('ERR_UPSTREAM_PROTOCOL', message);
    }
    default:
      return assertNever(end);
  }
}

type Refused = Extract<MqttEnd, { kind: 'refused' | 'dismissed' }>;

function refusal(name: string, { reasonCode, reason }: Refused, { hasAccount, options }: Approach): BridgeError {
  const data = { reasonCode };
  const said = `${describeReason(reasonCode)}${quote(reason)}`;
  if (isAboutCredentials(reasonCode)) {
    const { account } = options;
    const wayOut = hasAccount
      ? `Check the account given ${account}, and what the broker lets this user do`
      : `If the broker needs an account, give one ${account}`;
    const message = `The broker at ${name} refused the connection: ${said}. ${wayOut}.`;
    return new BridgeError('ERR_UPSTREAM_AUTH', message, { data });
  }
  const hint = reasonCode === REASONS.unsupportedVersion ? ' MCP needs a broker that speaks MQTT 5.' : '';
  return new BridgeError('ERR_UPSTREAM_CONNECT', `The broker at ${name} refused the connection: ${said}.${hint}`, {
    data,
  });
}

const UNTRUSTED: ReadonlySet<string | undefined> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_ISSUER_CERT',
]);
const NOT_TLS = 'it does not speak TLS at this port. Check the port, or use mqtt://';
/** Codes for which the explanation for HTTP gives unsuitable advice. */
const OWN_WORDS: ReadonlyMap<string | undefined, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there. Check host and port, and that the broker is running'],
  ['EPROTO', NOT_TLS],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NOT_TLS],
]);

/** Codes with which a broker asks for a client certificate, or may do so. */
const CLIENT_CERTIFICATE: ReadonlyMap<string | undefined, string> = new Map([
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'it wants a client certificate'],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'the TLS handshake failed; it may want a client certificate'],
]);

function explain(code: string | undefined, { tls, options }: Approach): string {
  const { ca, clientCertificate } = options;
  if (UNTRUSTED.has(code)) return `its certificate is not trusted here; give its authority with ${ca}`;
  const wanted = CLIENT_CERTIFICATE.get(code);
  if (wanted !== undefined) {
    return clientCertificate === undefined
      ? `${wanted}, which cannot be given here. Let the broker take an account instead`
      : `${wanted}; give one with ${clientCertificate}`;
  }
  const other = tls === 'on' ? 'if it does not speak TLS, use mqtt://' : 'if it speaks TLS, use mqtts://';
  if (code === 'ECONNRESET') return `the connection was reset before it was complete. Check the port; ${other}`;
  const fallback = `the connection was closed before it was complete. Check the port; ${other}`;
  return OWN_WORDS.get(code) ?? (code && explainCode(code)) ?? fallback;
}

function quote(reason: string | undefined): string {
  return reason === undefined || reason === '' ? '' : `, "${toPrintable(reason, MAX_REASON_LENGTH)}"`;
}
