import test from 'ava';
import type { CredentialRefusal, Credentials } from '../../src/http/client/credentials.ts';
import { listen } from '../fixtures/http-servers/listen.ts';
import { closeAfter, createClient, RecordedCall } from './recorded-call.ts';

/** Credentials that cannot be renewed, and what they hear of refusals. */
function recordRefusals(): { credentials: Credentials; refusals: CredentialRefusal[] } {
  const refusals: CredentialRefusal[] = [];
  const renewal: Credentials['renewal'] = {
    lastUnderWayMs: undefined,
    beforeRequest: () => undefined,
    accepted: () => {},
    takesNonce: () => false,
    refused: (refusal) => {
      refusals.push(refusal);
      return undefined;
    },
  };
  return { credentials: { show: () => ({ authorization: 'Bearer x' }), renewal, close: () => {} }, refusals };
}

test('a refusal says from which address it came', async (t) => {
  const server = await listen((_, response) => void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end());
  const { credentials, refusals } = recordRefusals();
  const client = createClient({ credentials });
  closeAfter(t, client, server);
  const call = await new RecordedCall(client, new URL(`http://localhost:${server.port}/mcp`)).finished();
  t.is(call.head?.status, 401);
  t.deepEqual(
    refusals.map(({ peerAddress, authorization }) => ({ peerAddress, authorization })),
    [{ peerAddress: '127.0.0.1', authorization: 'Bearer x' }],
  );
});

test('the address of a proxy is not that of the server behind it', async (t) => {
  const proxy = await listen((_, response) => void response.writeHead(401).end());
  const { credentials, refusals } = recordRefusals();
  const client = createClient({ credentials, proxyEnv: { http_proxy: proxy.url.origin } });
  closeAfter(t, client, proxy);
  await new RecordedCall(client, new URL('http://mcp.example/mcp')).finished();
  t.is(proxy.received[0]?.path, 'http://mcp.example/mcp');
  t.deepEqual(
    refusals.map(({ peerAddress }) => peerAddress),
    [undefined],
  );
});
