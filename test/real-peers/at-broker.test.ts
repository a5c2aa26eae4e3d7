/**
 * What the matrix of MQTT leaves out: the SDK v2 with a client that is not pinned to an era, and with a server that serves both.
 */
import { Client, type Transport } from '@modelcontextprotocol/client';
import test from 'ava';
import type { Era } from '../matrix/matrix-client.ts';
import { PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { startAdaptedServer } from '../support/mqtt-adapter.ts';
import { MqttClientTransport } from '../support/mqtt-client-transport.ts';
import { serverProgram } from '../support/server-program.ts';
import { serverOf, startedBridge, WAYS } from './sdk-clients.ts';
import { textOf } from './text-of.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test.serial : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const ERAS: readonly Era[] = ['legacy', 'modern'];
/** How the SDK v2 finds the era by default and with `auto`, and which one that is at a bridge, which serves both. */
const NEGOTIATIONS = [
  ['by default', {}, 'legacy'],
  ['that finds out the era', { versionNegotiation: { mode: 'auto' } }, 'modern'],
] as const;

for (const server of ERAS) {
  for (const [how, options, era] of NEGOTIATIONS) {
    mqtt(
      `a client of the SDK v2 ${how} speaks the ${era} era with a ${server} server offered at a broker`,
      async (t) => {
        const broker = await startMosquitto(PATIENT_BROKER);
        t.teardown(() => broker.stop());
        await startedBridge(t, ['--dial', `${broker.url}/site/tools`, ...serverOf(server)]);
        const client = new Client({ name: 'host', version: '1' }, options);
        await client.connect(new MqttClientTransport(new URL(`${broker.url}/site/tools`)) as Transport);
        t.teardown(() => client.close());
        t.is(client.getProtocolEra(), era);
        t.regex(textOf(await client.callTool({ name: 'test_simple_text' })), /simple text/);
      },
    );
  }
}

const BOTH_ERAS = serverProgram(new URL('../fixtures/servers/both-eras.js', import.meta.url));

for (const [way, open] of Object.entries(WAYS)) {
  for (const client of ERAS) {
    for (const server of ERAS) {
      mqtt(`a ${client} client ${way} uses a server of the SDK v2 at a broker in the ${server} era`, async (t) => {
        const broker = await startMosquitto(PATIENT_BROKER);
        t.teardown(() => broker.stop());
        const place = { url: broker.url, serverId: 'one', serverName: 'site/tools' };
        const adapted = await startAdaptedServer({ ...place, command: [process.execPath, BOTH_ERAS] });
        t.teardown(() => adapted.close());
        const target = [...(server === 'modern' ? ['--protocol', 'modern'] : []), `${broker.url}/site/tools`];
        const opened = await open(t, client, target);
        const called = (await opened.callTool({ name: 'shout', arguments: { text: 'hi' } })) as object;
        t.is(textOf(called), 'HI');
      });
    }
  }
}
