import type { MqttTarget } from '../../../src/config/server.ts';
import { createMqttConnector, type MqttConnectorOptions } from '../../../src/upstream/mqtt/connector.ts';
import { createTestDeps } from '../../process/collected-log.ts';

/** The server with this name at a broker on this machine. */
export function targetAt(port: number, serverName: string, serverId?: string): MqttTarget {
  return { kind: 'mqtt', address: { host: '127.0.0.1', port, tls: 'off' }, serverName, serverId };
}

/** A connector to a server at a broker, and what it says in the log. */
export function dialMqtt(target: MqttTarget, options: Partial<MqttConnectorOptions> = {}) {
  const { deps, entries } = createTestDeps();
  const connector = createMqttConnector({
    target,
    remote: {
      headers: new Map(),
      account: { user: undefined, password: undefined },
      tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    },
    connectTimeoutMs: 10_000,
    maxMessageBytes: 16 * 1024 * 1024,
    clientInfo: { name: 'test', version: '1' },
    failureLevel: 'warn',
    deps,
    ...options,
  });
  return { connector, entries };
}
