import { connect, isIP, type Socket } from 'node:net';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import type { MqttAddress } from '../config/server.ts';

/** TCP keep-alive delay, which notices a broker that has vanished while nothing is said over MQTT. */
const TCP_KEEP_ALIVE_MS = 30_000;

/** A socket that is connecting, and its event that means it is connected. */
export interface BrokerSocket {
  readonly socket: Socket;
  readonly connectedEvent: 'connect' | 'secureConnect';
}

export function openBrokerSocket({ host, port, tls }: MqttAddress, context: SecureContext | undefined): BrokerSocket {
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
  if (tls === 'off') return { socket: connect(options), connectedEvent: 'connect' };
  const secureContext = context === undefined ? {} : { secureContext: context };
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket = tlsConnect({ ...options, ...secureContext, ...servername, rejectUnauthorized: true });
  return { socket, connectedEvent: 'secureConnect' };
}
