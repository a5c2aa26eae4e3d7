import test from 'ava';
import { changeNotifications } from '../../../src/mcp/translate/change-notifications.ts';

const announced = { listChanged: true };

function methodsFor(capabilities: Record<string, unknown> | undefined, uris: readonly string[] = []) {
  return changeNotifications(capabilities, uris).map((frame) => frame.json());
}

test('tells of every list the server announces changes of', (t) => {
  t.deepEqual(methodsFor({ tools: announced, prompts: announced, resources: { ...announced, subscribe: true } }), [
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
    { jsonrpc: '2.0', method: 'notifications/prompts/list_changed' },
    { jsonrpc: '2.0', method: 'notifications/resources/list_changed' },
  ]);
});

test('tells of no list whose changes clients were never promised to hear of', (t) => {
  for (const tools of [{}, { listChanged: false }, { listChanged: 'true' }, null, undefined, 'x']) {
    t.deepEqual(methodsFor({ tools }), []);
  }
  t.deepEqual(methodsFor({}), []);
  t.deepEqual(methodsFor(undefined), []);
});

test('tells of every subscribed resource', (t) => {
  t.deepEqual(methodsFor({}, ['a:1', 'a:"2"']), [
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:"2"' } },
  ]);
});
