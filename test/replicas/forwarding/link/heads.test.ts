import test from 'ava';
import {
  decodePassedHead,
  decodeReturnedHead,
  encodePassedHead,
  encodeReturnedHead,
} from '../../../../src/replicas/forwarding/link/heads.ts';

test('heads come out as they went in', (t) => {
  const passed = { method: 'POST', target: '/mcp?x="1"', principal: 'Ålice', headers: ['x-a', 'b', 'x-a', '\u00e9\\'] };
  t.deepEqual(decodePassedHead(encodePassedHead(passed)), passed);
  const returned = { status: 404, headers: ['Content-Length', '0'] };
  t.deepEqual(decodeReturnedHead(encodeReturnedHead(returned)), returned);
});

test('whatever is no head is taken for none', (t) => {
  for (const text of ['', '{}', 'null', '[', '["GET","/"]', '["GET","/","a","x"]', '["GET","/","a",1,2]', '"GET"']) {
    t.is(decodePassedHead(Buffer.from(text)), undefined, text);
  }
  for (const text of ['[]', '["99"]', '["1000"]', '[200]', '["200","x"]', '["abc"]', '["2e2"]']) {
    t.is(decodeReturnedHead(Buffer.from(text)), undefined, text);
  }
});
