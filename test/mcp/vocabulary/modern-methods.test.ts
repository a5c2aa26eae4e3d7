import test from 'ava';
import { isCacheable, isModernRequest, isSpecified } from '../../../src/mcp/vocabulary/methods.ts';

test('knows the requests of the modern era, and lets everybody else have their own', (t) => {
  for (const method of [
    ...['server/discover', 'tools/list', 'tools/call', 'resources/list', 'resources/templates/list'],
    ...['resources/read', 'prompts/list', 'prompts/get', 'completion/complete', 'subscriptions/listen'],
    ...['tasks/get', 'tasks/update', 'tasks/cancel', 'vendor/x', 'com.example/tools/call', 'x', 'constructor', ''],
  ]) {
    t.true(isModernRequest(method), method);
  }
});

test('takes the methods of extensions for modern ones, whatever their first segment is', (t) => {
  for (const method of [
    ...['resources/directory/read', 'skills/list', 'skills/get', 'ui/open', 'tools/new', 'prompts/', 'server/x/y'],
    ...['tasks/pause', 'roots/add', 'logging/rotate', 'elicitation/list', 'notifications/replay', 'initialize/again'],
  ]) {
    t.true(isModernRequest(method), method);
    t.false(isSpecified(method), method);
  }
});

test('refuses by name what the modern era is known not to have', (t) => {
  for (const method of [
    ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
    ...['tasks/result', 'tasks/list', 'sampling/createMessage', 'elicitation/create', 'roots/list'],
    ...['notifications/initialized', 'notifications/cancelled', 'notifications/progress'],
    ...['notifications/roots/list_changed', 'notifications/tasks/status'],
  ]) {
    t.false(isModernRequest(method), method);
  }
});

test('knows the requests of the specification, of whatever era', (t) => {
  for (const method of [
    'initialize',
    'resources/subscribe',
    'server/discover',
    'tools/call',
    'tasks/get',
    'tasks/list',
  ]) {
    t.true(isSpecified(method), method);
  }
  for (const method of ['tools', 'toolsX/call', 'constructor', '']) t.false(isSpecified(method), method);
});

test('knows the results that can be kept for a while', (t) => {
  for (const method of ['server/discover', 'tools/list', 'resources/read']) t.true(isCacheable(method), method);
  // [SEP-2640] of an extension that says so
  for (const method of ['skills/list', 'skills/get']) t.true(isCacheable(method), method);
  for (const method of ['tools/call', 'prompts/get', 'completion/complete', 'resources/directory/read', 'x']) {
    t.false(isCacheable(method), method);
  }
});
