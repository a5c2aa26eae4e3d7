import test from 'ava';
import { translatedError } from '../../../src/mcp/translate/errors.ts';
import { readPayload } from '../../../src/mcp/vocabulary/payload.ts';
import type { RpcError } from '../../../src/mcp/vocabulary/rpc-errors.ts';
import { serverFrame } from '../../support/frames.ts';

const FLOATS = '"data":{"n":12345678901234567890,"f":1.0,"t":"\\u00e9"}';

/** The error of the answer under the id 1, as it is written. */
function translate(error: string, change: (said: RpcError) => RpcError, extra = ''): string {
  const frame = serverFrame(`{"jsonrpc":"2.0","id":"there"${extra},"error":${error}}`);
  const said = readPayload(frame) as unknown as RpcError;
  const text = String(translatedError(frame, { id: 1, said, meant: change(said) }).bytes);
  const [, written] = /^\{"jsonrpc":"2\.0","id":1,"error":(.*)\}$/.exec(text) ?? [];
  return written ?? `not an error: ${text}`;
}

test('an error that means the same in both eras stays byte for byte', (t) => {
  const error = `{ "message":"\\u0041", "code":7,${FLOATS},"vendor":1.0}`;
  t.is(
    translate(error, (said) => said),
    error,
  );
});

test('another code is put in its place, and the rest stays byte for byte', (t) => {
  const error = `{"message":"\\u0041","code":-32601,${FLOATS}}`;
  t.is(
    translate(error, (said) => ({ ...said, code: -32602 })),
    error.replace('-32601', '-32602'),
  );
});

test('what is added to the data leaves the rest of it byte for byte', (t) => {
  const error = `{"code":7,"message":"m",${FLOATS}}`;
  const added = translate(error, (said) => ({ ...said, data: { ...(said.data as object), t: 'other', uri: 'a:b' } }));
  t.is(added, error.replace('"\\u00e9"', '"other","uri":"a:b"'));
});

test('data where there was none, or none that holds members, is written anew', (t) => {
  const data = { bridge: 1 };
  for (const said of ['', ',"data":[1]', ',"data":null', ',"data":"text"']) {
    const error = `{"code":7,"message":"m"${said}}`;
    t.is(
      translate(error, ({ code, message }) => ({ code, message, data })),
      '{"code":7,"message":"m","data":{"bridge":1}}',
    );
  }
});

test('nothing but the error is taken of a response', (t) => {
  const error = '{"code":7,"message":"m"}';
  t.is(
    translate(error, (said) => said, ',"result":null,"vendor":1'),
    error,
  );
});

test('what is no error that could be edited becomes one', (t) => {
  const meant = { code: -32603, message: 'the server gave no reason' };
  for (const error of ['null', '[]', '{"code":NaN}', '5']) {
    const frame = serverFrame(`{"jsonrpc":"2.0","id":2,"error":${error}}`);
    const answer = translatedError(frame, { id: 1, said: meant, meant });
    t.deepEqual(JSON.parse(String(answer.bytes)), { jsonrpc: '2.0', id: 1, error: meant });
  }
});
