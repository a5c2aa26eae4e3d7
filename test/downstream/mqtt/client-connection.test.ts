import test from 'ava';
import { MqttClientConnection } from '../../../src/downstream/mqtt/client-connection.ts';
import { notificationFrame, resultFrame } from '../../../src/wire/write-message.ts';

const ADDRESS = { serverId: 's', serverName: 'a/b' };

/** A client that shares a connection which is full, and how often it was told that there is capacity again. */
function openAtFullConnection() {
  const shared = { hasCapacity: false };
  const published: string[] = [];
  const publish = ({ topic }: { readonly topic: string }): boolean => {
    published.push(topic);
    return shared.hasCapacity;
  };
  let drains = 0;
  const listener = {
    read: () => undefined,
    message: () => undefined,
    oversized: () => undefined,
    drained: () => {
      drains += 1;
    },
    inputEnded: () => undefined,
    readerGone: () => undefined,
    crowded: () => undefined,
  };
  const connection = new MqttClientConnection(
    {
      connection: { publish },
      clientId: 'c',
      address: ADDRESS,
      properties: {},
      tellAll: () => publish({ topic: 'all' }),
      onOpened: () => undefined,
    },
    listener,
  );
  return { connection, shared, published, drains: () => drains };
}

for (const [what, { bytes }] of [
  ['an answer', resultFrame(1, {})],
  ['a changed list', notificationFrame('notifications/tools/list_changed')],
] as const) {
  test(`after ${what} at a connection that is full, the server goes on when there is capacity again`, (t) => {
    const { connection, published, drains } = openAtFullConnection();
    t.false(connection.send(bytes));
    t.is(published.length, 1);
    t.is(drains(), 0);
    connection.drained();
    connection.drained();
    t.is(drains(), 1);
  });
}

test('a message that finds capacity leaves the server waiting for nothing', (t) => {
  const { connection, shared, drains } = openAtFullConnection();
  t.false(connection.send(resultFrame(1, {}).bytes));
  shared.hasCapacity = true;
  t.true(connection.send(resultFrame(2, {}).bytes));
  connection.drained();
  t.is(drains(), 1);
});
