import type { ServerResponse } from 'node:http';
import test from 'ava';
import fc from 'fast-check';
import { type AskedMessage, event, notification, openStream } from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectScripted } from './connect-modern.ts';

interface Held {
  readonly asked: AskedMessage;
  readonly response: ServerResponse;
}

const CLIENTS = 3;
/** All clients use the same few, so everything collides. */
const ID = fc.constantFrom<string | number>(0, 1, '1', '', 'é');

const request = fc.record({ client: fc.nat({ max: CLIENTS - 1 }), id: ID, token: fc.option(ID), rank: fc.nat() });

test('whatever a server says on the answer to one call, each client hears exactly what is its own', async (t) => {
  const held: Held[] = [];
  const { connect } = await connectScripted(t, {
    'prompts/get': (asked, response) => void held.push({ asked, response }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(request, { selector: ({ client, id }) => `${client} ${JSON.stringify(id)}`, maxLength: 12 }),
      async (calls) => {
        const clients = Array.from({ length: CLIENTS }, () => connect());
        for (const { client, id, token } of calls) {
          const meta = token === null ? {} : { _meta: { progressToken: token } };
          clients[client]?.start('prompts/get', { name: `${client} ${JSON.stringify(id)}`, ...meta }, id);
        }
        await waitFor(() => held.length === calls.length);
        const taken = held.splice(0);
        const ids = taken.map(({ asked }) => asked.message.id);
        const ranks = new Map(calls.map(({ client, id, rank }) => [`${client} ${JSON.stringify(id)}`, rank]));
        taken.sort((a, b) => rankOf(a) - rankOf(b));
        function rankOf({ asked }: Held): number {
          return ranks.get(String(asked.message.params?.name)) ?? 0;
        }
        for (const { asked, response } of taken) {
          openStream(response);
          // All that belongs to others as well; only its own may arrive.
          for (const id of ids) {
            response.write(event(notification('notifications/progress', { progressToken: id, progress: 1 })));
            if (id !== asked.message.id) response.write(event({ jsonrpc: '2.0', id, result: { of: 'another' } }));
          }
          response.end(event({ jsonrpc: '2.0', id: asked.message.id, result: { of: asked.message.params?.name } }));
        }
        for (const { client, id, token } of calls) {
          const { result } = (await clients[client]?.answer(id)) ?? {};
          if (result?.of !== `${client} ${JSON.stringify(id)}`) throw new Error(`${client} ${id} got ${result?.of}`);
          const progress = clients[client]?.peer.sent.filter(
            ({ frame, call }) => frame.method !== undefined && call?.id === id,
          );
          const tokens = progress?.map(
            ({ frame }) => (frame.json() as { params: { progressToken: unknown } }).params.progressToken,
          );
          if (JSON.stringify(tokens) !== JSON.stringify(token === null ? [] : [token]))
            throw new Error(`progress ${tokens}`);
        }
        for (const [index, client] of clients.entries()) {
          const own = calls.filter((one) => one.client === index);
          const expected = own.length + own.filter(({ token }) => token !== null).length;
          if (client.received.length !== expected) throw new Error('something came that is not of this client');
          client.close();
        }
      },
    ),
    { numRuns: 30 },
  );
  t.pass();
});
