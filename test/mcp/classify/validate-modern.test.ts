import test from 'ava';
import { validateModern } from '../../../src/mcp/classify/route-era.ts';
import { clientFrame } from '../../support/frames.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const REVISION = '2026-07-28';

const good = { 'mcp-protocol-version': REVISION, 'mcp-method': 'tools/call', 'mcp-name': 'x' };
const envelope = { [VERSION]: REVISION, [CAPABILITIES]: { roots: {} } };
const isKnownMethod = (method: string) => method !== 'ping';

const call = (meta: object | undefined, method = 'tools/call') =>
  clientFrame({ id: 1, method, params: { name: 'x', ...(meta && { _meta: meta }) } });

function validate(frame: ReturnType<typeof call>, headers: Record<string, string | undefined> | undefined) {
  return validateModern({ frame, headers, supportedRevisions: [REVISION], isKnownMethod });
}

test('takes a request whose body and headers agree', (t) => {
  const metadata = { revision: REVISION, capabilities: { roots: {} }, clientInfo: undefined, logLevel: undefined };
  t.deepEqual(validate(call(envelope), good), { ok: metadata });
  t.deepEqual(validate(call(envelope), undefined), { ok: metadata }, 'stdio has no headers');
});

// Each row has all the faults of the rows below it, and only its own is told.
for (const [title, frame, headers, httpStatus, code, message] of [
  [
    'a response before all else',
    clientFrame({ id: 1, result: {} }),
    {},
    400,
    -32600,
    'expected a request; this is a result',
  ],
  [
    'a missing envelope before headers, though one of them names a modern revision',
    call(undefined, 'ping'),
    { 'mcp-protocol-version': REVISION },
    400,
    -32602,
    `params._meta["${VERSION}"] is missing; expected a string`,
  ],
  [
    'an incomplete envelope before headers',
    call({ [VERSION]: 'never' }, 'ping'),
    {},
    400,
    -32602,
    `params._meta["${CAPABILITIES}"] is missing; expected an object`,
  ],
  [
    'a missing version header before a revision that is not supported',
    call({ ...envelope, [VERSION]: 'never' }, 'ping'),
    { ...good, 'mcp-protocol-version': undefined },
    400,
    -32020,
    'the MCP-Protocol-Version header is missing; if the client sends it, a proxy on the way removes it',
  ],
  [
    'a version header that disagrees before a revision that is not supported',
    call({ ...envelope, [VERSION]: 'never' }, 'ping'),
    good,
    400,
    -32020,
    'the MCP-Protocol-Version header does not match the body',
  ],
  [
    'another header that is missing before a revision that is not supported',
    call({ ...envelope, [VERSION]: 'never' }, 'ping'),
    { 'mcp-protocol-version': 'never' },
    400,
    -32020,
    'the Mcp-Method header is missing; if the client sends it, a proxy on the way removes it',
  ],
  [
    'a revision that is not supported before a method that is unknown',
    call({ ...envelope, [VERSION]: 'never' }, 'ping'),
    { 'mcp-protocol-version': 'never', 'mcp-method': 'ping' },
    400,
    -32022,
    'this revision is not supported; supported: 2026-07-28',
  ],
  [
    'a method that is unknown',
    call(envelope, 'ping'),
    { ...good, 'mcp-method': 'ping' },
    404,
    -32601,
    'there is no such method in this revision',
  ],
] as const) {
  test(`refuses ${title}`, (t) => {
    const data = code === -32022 ? { data: { supported: [REVISION], requested: 'never' } } : {};
    t.deepEqual(validate(frame, headers), { httpStatus, code, message, ...data });
  });
}

test('over stdio a revision is refused by what the body says', (t) => {
  t.like(validate(call({ ...envelope, [VERSION]: '2025-11-25' }), undefined), { code: -32022 });
});

test('without a judge of methods all are known', (t) => {
  const request = { frame: call(envelope, 'ping'), headers: undefined, supportedRevisions: [REVISION] };
  t.true('ok' in validateModern(request));
});
