import test from 'ava';
import { routeEra } from '../../../src/mcp/classify/route-era.ts';
import { clientFrame } from '../../support/frames.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const params = { _meta: { [VERSION]: 'any' } };
const session = { 'mcp-session-id': 's' };
const modern = { 'mcp-protocol-version': '2026-07-28' };
const later = { 'mcp-protocol-version': ' 2027-01-01 ' };
const legacy = { 'mcp-protocol-version': '2025-11-25' };
const initialize = clientFrame({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
const call = clientFrame({ id: 1, method: 'tools/call', params: { name: 'x' } });
const notification = clientFrame({ method: 'notifications/x' });
const response = clientFrame({ id: 1, result: {} });
const claiming = clientFrame({ id: 1, method: 'tools/call', params });
const claimingNotification = clientFrame({ method: 'notifications/cancelled', params });
const missing = {
  kind: 'refused',
  refusal: { httpStatus: 400, code: -32602, message: `params._meta["${VERSION}"] is missing; expected a string` },
} as const;
const invalid = (message: string) =>
  ({ kind: 'refused', refusal: { httpStatus: 400, code: -32600, message } }) as const;

for (const [title, message, headers, route] of [
  ['a request with an envelope', claiming, {}, { kind: 'modern' }],
  ['a request with an envelope in a session', claiming, { ...session, ...legacy }, { kind: 'modern' }],
  ['initialize with an envelope', clientFrame({ id: 1, method: 'initialize', params }), session, { kind: 'modern' }],
  ['a notification with an envelope', claimingNotification, {}, { kind: 'modern-notification' }],
  ['initialize', initialize, {}, { kind: 'initialize' }],
  ['initialize in a session', initialize, session, { kind: 'initialize' }],
  ['initialize under a modern header', initialize, modern, { kind: 'initialize' }],
  ['a request in a session', call, session, { kind: 'session', sessionId: 's' }],
  [
    'a request in a session under a modern header',
    call,
    { ...session, ...modern },
    { kind: 'session', sessionId: 's' },
  ],
  ['a notification in a session', notification, session, { kind: 'session', sessionId: 's' }],
  ['a response in a session', response, session, { kind: 'session', sessionId: 's' }],
  ['a request under a modern header', call, modern, missing],
  ['a request under a later header', call, later, missing],
  ['a notification under a modern header', notification, modern, { kind: 'modern-notification' }],
  ['a response under a modern header', response, modern, invalid('modern clients send no responses')],
  ['a request on its own', call, {}, { kind: 'sessionless' }],
  ['a request under a legacy header', call, legacy, { kind: 'sessionless' }],
  ['a request under a header that is no revision', call, { 'mcp-protocol-version': 'x' }, { kind: 'sessionless' }],
  ['a request with an empty session id', call, { 'mcp-session-id': '' }, { kind: 'sessionless' }],
  ['a response on its own', response, {}, { kind: 'sessionless' }],
  ['a batch', [call, notification], {}, { kind: 'batch', sessionId: undefined }],
  ['a batch in a session', [call, { fault: 'x', id: undefined }], session, { kind: 'batch', sessionId: 's' }],
  [
    'a batch with a modern request in it',
    [call, claiming],
    session,
    invalid('a batch holds a modern message; modern messages are sent one by one'),
  ],
  [
    'a related task',
    clientFrame({ id: 1, method: 'm', params: { _meta: { 'io.modelcontextprotocol/related-task': {} } } }),
    {},
    { kind: 'sessionless' },
  ],
] as const) {
  test(`routes ${title}`, (t) => {
    t.deepEqual(routeEra(message, headers), route);
  });
}
