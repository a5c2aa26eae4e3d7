import test from 'ava';
import { decodeHealthRequest, encodeHealthResponse, SERVING_STATUS } from '../../src/grpc/health-messages.ts';

test('requests name a service, or none', (t) => {
  t.is(decodeHealthRequest(Buffer.alloc(0)), '');
  t.is(decodeHealthRequest(Buffer.from('\x0a\x14mcp.transport.v1.Mcp')), 'mcp.transport.v1.Mcp');
  t.is(decodeHealthRequest(Buffer.from('\x0a\x14mcp')), undefined);
});

test('responses have their length before them', (t) => {
  t.deepEqual([...encodeHealthResponse(SERVING_STATUS.notServing)], [0, 0, 0, 0, 2, 8, 2]);
});
