import test from 'ava';
import { type Approach, endError, type MqttEnd } from '../../src/mqtt/end-error.ts';

const OF_TARGET: Approach['options'] = {
  account: 'with --user and --password',
  ca: '--ca',
  clientCertificate: '--client-cert and --client-key',
  connectTimeout: '--connect-timeout',
};
const OF_HUB: Approach['options'] = {
  account: 'in the URL of --dial',
  ca: '--dial-ca',
  clientCertificate: undefined,
  connectTimeout: undefined,
};

interface Trial {
  readonly what: string;
  readonly end: MqttEnd;
  readonly says: string;
  readonly approach?: Partial<Approach>;
}

const unreachable = (code: string): MqttEnd => ({
  kind: 'unreachable',
  cause: Object.assign(new Error('-'), { code }),
});
const REFUSED: MqttEnd = { kind: 'refused', reasonCode: 135, reason: undefined };

const TRIALS: readonly Trial[] = [
  {
    what: 'a port at which nobody listens',
    end: unreachable('ECONNREFUSED'),
    says: 'Cannot reach the broker at mqtt://broker: nothing listens there. Check host and port, and that the broker is running (ECONNREFUSED).',
  },
  {
    what: 'a connection without TLS that is reset',
    end: unreachable('ECONNRESET'),
    says: 'Cannot reach the broker at mqtt://broker: the connection was reset before it was complete. Check the port; if it speaks TLS, use mqtts:// (ECONNRESET).',
  },
  {
    what: 'a connection over TLS that is reset',
    end: unreachable('ECONNRESET'),
    approach: { tls: 'on' },
    says: 'Cannot reach the broker at mqtt://broker: the connection was reset before it was complete. Check the port; if it does not speak TLS, use mqtt:// (ECONNRESET).',
  },
  {
    what: 'a connection over TLS that is closed without a word',
    end: { kind: 'unreachable', cause: undefined },
    approach: { tls: 'on' },
    says: 'Cannot reach the broker at mqtt://broker: the connection was closed before it was complete. Check the port; if it does not speak TLS, use mqtt://.',
  },
  {
    what: 'an unknown authority',
    end: unreachable('SELF_SIGNED_CERT_IN_CHAIN'),
    approach: { tls: 'on', options: OF_HUB },
    says: 'Cannot reach the broker at mqtt://broker: its certificate is not trusted here; give its authority with --dial-ca (SELF_SIGNED_CERT_IN_CHAIN).',
  },
  {
    what: 'a broker that wants a client certificate',
    end: unreachable('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    approach: { tls: 'on' },
    says: 'Cannot reach the broker at mqtt://broker: it wants a client certificate; give one with --client-cert and --client-key (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED).',
  },
  {
    what: 'a hub that wants a client certificate',
    end: unreachable('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    approach: { tls: 'on', options: OF_HUB },
    says: 'Cannot reach the broker at mqtt://broker: it wants a client certificate, which cannot be given here. Let the broker take an account instead (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED).',
  },
  {
    what: 'an account that is refused',
    end: REFUSED,
    says: 'The broker at mqtt://broker refused the connection: not authorized (135). Check the account given with --user and --password, and what the broker lets this user do.',
  },
  {
    what: 'a broker that wants an account',
    end: REFUSED,
    approach: { hasAccount: false },
    says: 'The broker at mqtt://broker refused the connection: not authorized (135). If the broker needs an account, give one with --user and --password.',
  },
  {
    what: 'a hub that wants an account',
    end: REFUSED,
    approach: { hasAccount: false, options: OF_HUB },
    says: 'The broker at mqtt://broker refused the connection: not authorized (135). If the broker needs an account, give one in the URL of --dial.',
  },
  {
    what: 'a broker that is slow',
    end: { kind: 'slow', afterMs: 10_000 },
    says: 'The broker at mqtt://broker did not accept the connection within 10000 ms (the connect limit). Check that it speaks MQTT at this port, and firewalls on the way, or raise --connect-timeout.',
  },
  {
    what: 'a hub that is slow, whose limit is fixed',
    end: { kind: 'slow', afterMs: 10_000 },
    approach: { options: OF_HUB },
    says: 'The broker at mqtt://broker did not accept the connection within 10000 ms (the connect limit). Check that it speaks MQTT at this port, and firewalls on the way.',
  },
];

for (const { what, end, says, approach } of TRIALS) {
  test(`says how to go on with ${what}`, (t) => {
    const error = endError('mqtt://broker', end, { tls: 'off', hasAccount: true, options: OF_TARGET, ...approach });
    t.is(error.message, says);
  });
}
