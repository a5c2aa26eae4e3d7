import test from 'ava';
import { asSessionDialer } from '../../src/upstream/connection.ts';
import { PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { startAdaptedServer } from '../support/mqtt-adapter.ts';
import { serverProgram } from '../support/server-program.ts';
import { dialMqtt, targetAt } from '../upstream/mqtt/dial.ts';
import { testUpstreamContract } from './upstream-contract.ts';

const COMMAND = [process.execPath, serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url))];

if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());
else {
  testUpstreamContract(test, {
    name: 'MQTT',
    async start() {
      const broker = await startMosquitto(PATIENT_BROKER);
      const server = await startAdaptedServer({
        url: broker.url,
        serverId: 'one',
        serverName: 'a/b',
        command: COMMAND,
      });
      const dialer = asSessionDialer(dialMqtt(targetAt(broker.port, 'a/b')).connector);
      return {
        dialer,
        kill: () => server.kill(),
        close: async () => {
          await dialer.close();
          await server.close();
          await broker.stop();
        },
      };
    },
    deathEndsSession: true,
  });
}
