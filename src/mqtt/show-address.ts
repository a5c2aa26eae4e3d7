import { isIP } from 'node:net';
import type { MqttAddress } from '../config/server.ts';

/** `mqtt://host:port`, without what may be a credential. */
export function showBroker({ host, port, tls }: MqttAddress): string {
  return `${tls === 'on' ? 'mqtts' : 'mqtt'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** The broker and the name of a server there, as a URL that can be used again. */
export function showServer(address: MqttAddress, serverName: string): string {
  return `${showBroker(address)}/${serverName.split('/').map(encodeURIComponent).join('/')}`;
}
