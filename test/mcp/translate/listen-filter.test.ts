import test from 'ava';
import { missedChanges, readListenFilter } from '../../../src/mcp/translate/listen-filter.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const listen = (notifications?: unknown) =>
  clientFrame({ id: 1, method: 'subscriptions/listen', params: { notifications } });
const acknowledge = (notifications?: unknown) =>
  serverFrame({ method: 'notifications/subscriptions/acknowledged', params: { notifications } });

const NOTHING = {
  toolsListChanged: false,
  promptsListChanged: false,
  resourcesListChanged: false,
  resourceSubscriptions: [],
};

for (const [title, notifications, expected] of [
  ['nothing', {}, NOTHING],
  ['some of it', { toolsListChanged: true, promptsListChanged: false }, { ...NOTHING, toolsListChanged: true }],
  ['what is not of the right type', { toolsListChanged: 1, resourceSubscriptions: 'a' }, NOTHING],
  ['resources', { resourceSubscriptions: ['a', 7, 'b'] }, { ...NOTHING, resourceSubscriptions: ['a', 'b'] }],
  ['no filter', undefined, undefined],
  ['a filter that is none', [true], undefined],
] as const) {
  test(`reads a filter with ${title}`, (t) => {
    t.deepEqual(readListenFilter(listen(notifications)), expected);
  });
}

const EVERYTHING = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a', 'b'],
};

const shown = (request: unknown, acknowledgment: unknown) =>
  missedChanges(listen(request), acknowledge(acknowledgment), Buffer.from('"\\u0041"')).map(({ bytes }) =>
    bytes.toString(),
  );

test('what may have been missed is what was asked for and granted, under the token of the subscription', (t) => {
  const meta = '"_meta":{"io.modelcontextprotocol/subscriptionId":"\\u0041"}';
  const expected = [
    `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{${meta}}}`,
    `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{${meta}}}`,
    `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{${meta}}}`,
    `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a",${meta}}}`,
    `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b",${meta}}}`,
  ];
  t.deepEqual(shown(EVERYTHING, EVERYTHING), expected);
  t.deepEqual(shown(EVERYTHING, undefined), expected);
  t.deepEqual(shown(EVERYTHING, { promptsListChanged: true, resourceSubscriptions: ['b', 'c'] }), [
    expected[1],
    expected[4],
  ]);
  t.deepEqual(shown({ toolsListChanged: true }, EVERYTHING), [expected[0]]);
  t.deepEqual(shown(undefined, EVERYTHING), []);
});

test('of very many resources only the first are looked at again', (t) => {
  const resourceSubscriptions = Array.from({ length: 1001 }, (_, n) => `file:///${n}`);
  t.is(shown({ resourceSubscriptions }, { resourceSubscriptions }).length, 1000);
});
