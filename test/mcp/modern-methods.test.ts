import test from 'ava';
import { isCacheable, isModernRequest, isSpecified } from '../../src/mcp/modern-methods.ts';

test('knows the requests of the modern era and lets vendors have their own', (t) => {
  for (const method of [
    ...['server/discover', 'tools/list', 'tools/call', 'resources/list', 'resources/templates/list'],
    ...['resources/read', 'prompts/list', 'prompts/get', 'completion/complete', 'subscriptions/listen'],
    ...['tasks/get', 'tasks/update', 'tasks/cancel', 'vendor/x', 'com.example/tools/call', 'x', 'constructor', ''],
  ]) {
    t.true(isModernRequest(method), method);
  }
});

test('knows what is gone, and leaves what the specification may yet name to it', (t) => {
  for (const method of [
    ...['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
    ...['tasks/result', 'tasks/list', 'sampling/createMessage', 'elicitation/create', 'roots/list'],
    ...['notifications/initialized', 'tools/new', 'prompts/', 'server/x/y'],
  ]) {
    t.false(isModernRequest(method), method);
    t.true(isSpecified(method), method);
  }
  t.false(isSpecified('toolsX/call'));
  t.false(isSpecified('tools'));
});

test('knows the results that can be kept for a while', (t) => {
  for (const method of ['server/discover', 'tools/list', 'resources/read']) t.true(isCacheable(method), method);
  for (const method of ['tools/call', 'prompts/get', 'completion/complete', 'x']) t.false(isCacheable(method), method);
});
