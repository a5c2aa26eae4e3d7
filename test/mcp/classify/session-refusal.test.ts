import test from 'ava';
import { classifySessionRefusal, type SessionVerdict } from '../../../src/mcp/classify/session-refusal.ts';

type Row = readonly [
  status: number,
  code: number | undefined,
  whose: 'named' | 'nameless',
  reason: string,
  verdict: SessionVerdict,
];

const rows: readonly Row[] = [
  [404, undefined, 'nameless', '', 'forgotten'],
  [404, -32001, 'nameless', 'Session not found', 'forgotten'],
  [404, -32600, 'named', 'Session not found', 'forgotten'],
  [404, -32601, 'named', 'Method not found', 'unrelated'],
  [400, undefined, 'nameless', 'Bad Request', 'refused'],
  [400, -32000, 'nameless', 'Bad Request: Server not initialized', 'refused'],
  [400, -32000, 'named', 'Bad Request: No valid session ID provided', 'refused'],
  [400, -32602, 'named', 'Invalid params: session must be a number', 'unrelated'],
  [410, -32000, 'nameless', 'gone', 'refused'],
  [401, undefined, 'nameless', 'Unauthorized: Session not found', 'refused'],
  [401, undefined, 'nameless', 'Unauthorized', 'unrelated'],
  [403, -32001, 'nameless', 'Mcp-Session-Id principal mismatch', 'refused'],
  [403, undefined, 'nameless', 'Forbidden', 'unrelated'],
  [429, undefined, 'nameless', 'Too many requests', 'unrelated'],
  [503, -32000, 'nameless', 'Session unknown or expired', 'refused'],
  [503, undefined, 'nameless', 'upstream connect error', 'unrelated'],
  [500, -32603, 'nameless', 'unknown session', 'answered'],
  [502, undefined, 'nameless', 'session reset by peer', 'answered'],
  [500, undefined, 'nameless', 'Internal Server Error', 'unrelated'],
  [200, -32600, 'named', 'Invalid Request', 'refused'],
  [200, -32600, 'nameless', 'Invalid Request', 'refused'],
  [200, -32001, 'named', 'Session not found', 'answered'],
  [200, -32001, 'named', 'Request timed out', 'unrelated'],
  [200, -32603, 'named', 'the session of the database is closed', 'answered'],
  [200, -32602, 'named', 'Unknown tool', 'unrelated'],
];

for (const [status, code, whose, reason, verdict] of rows) {
  test(`${status}, ${code ?? 'no code'}, ${whose}, "${reason}" is ${verdict}`, (t) => {
    t.is(classifySessionRefusal({ status, code, namesRequest: whose === 'named', reason }), verdict);
  });
}
