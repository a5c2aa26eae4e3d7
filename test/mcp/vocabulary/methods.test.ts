import test from 'ava';
import { isInteractive, isListChanged, isTaskRequest, mayAsk } from '../../../src/mcp/vocabulary/methods.ts';

test('a server may ask its client during a tool call, a prompt and the reading of a resource', (t) => {
  for (const method of ['tools/call', 'prompts/get', 'resources/read']) t.true(isInteractive(method));
  for (const method of ['tools/list', 'initialize', 'ping', '', 'constructor']) t.false(isInteractive(method));
});

test('knows the notifications that only say "look again"', (t) => {
  for (const list of ['tools', 'prompts', 'resources']) t.true(isListChanged(`notifications/${list}/list_changed`));
  for (const method of ['notifications/roots/list_changed', 'notifications/resources/updated', '', undefined]) {
    t.false(isListChanged(method));
  }
});

test('only of the plain requests of the specification it is certain that a question is not theirs', (t) => {
  for (const method of ['tools/list', 'resources/templates/list', 'completion/complete', 'ping', 'logging/setLevel']) {
    t.false(mayAsk(method), method);
  }
  for (const method of ['tools/call', 'prompts/get', 'resources/read', 'x-vendor/do', 'tools/', '']) {
    t.true(mayAsk(method), method);
  }
});

test('knows the requests about tasks of either era, and not everything that is named alike', (t) => {
  for (const name of ['get', 'update', 'cancel', 'result', 'list']) t.true(isTaskRequest(`tasks/${name}`), name);
  for (const method of ['tasks/pause', 'tasks/', 'tasks', 'x', 'constructor']) t.false(isTaskRequest(method), method);
});
