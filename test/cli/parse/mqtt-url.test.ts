import test from 'ava';
import { parseMqttUrl } from '../../../src/cli/parse/mqtt-url.ts';

test('reads the broker, the name of the server and the id of an instance', (t) => {
  t.deepEqual(parseMqttUrl('mqtt://192.168.1.10/ESP32%20Demo%20Server'), {
    ok: true,
    value: {
      address: { host: '192.168.1.10', port: 1883, tls: 'off' },
      serverName: 'ESP32 Demo Server',
      serverId: undefined,
      user: undefined,
      password: undefined,
    },
  });
  t.deepEqual(parseMqttUrl('mqtts://me:p%40ss@[::1]:9999/a/b?server-id=lamp-1'), {
    ok: true,
    value: {
      address: { host: '::1', port: 9999, tls: 'on' },
      serverName: 'a/b',
      serverId: 'lamp-1',
      user: 'me',
      password: 'p@ss',
    },
  });
  t.like(parseMqttUrl('mqtts://broker/a'), { value: { address: { port: 8883 } } });
  // A space may stand as it is, as a shell passes it.
  t.like(parseMqttUrl('mqtt://broker/a b'), { value: { serverName: 'a b' } });
});

for (const url of [
  'mqtt://broker',
  'mqtt://broker/',
  'mqtt://broker//a',
  'mqtt://broker/a/',
  'mqtt://broker/a//b',
  'mqtt://broker/+',
  'mqtt://broker/a/%2B',
  'mqtt://broker/a/%23',
  'mqtt://broker/a#b',
  'mqtt://broker/a%00',
  'mqtt://broker/%zz',
  'mqtt:///a',
  'mqtt://broker:0/a',
  'mqtt://broker:99999/a',
  'mqtt://broker/a?server-id=',
  'mqtt://broker/a?server-id=b%2Fc',
  'mqtt://broker/a?server-id=b&server-id=c',
  'mqtt://broker/a?other=b',
  'http://broker/a',
]) {
  test(`refuses ${url}, and shows nothing of it`, (t) => {
    const parsed = parseMqttUrl(url);
    t.false(parsed.ok);
    t.false(!parsed.ok && parsed.problem.includes('broker/'));
  });
}
