import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { createToolView } from '../../src/bridge/create-tool-view.ts';
import type { ToolShape } from '../../src/config/tool-choice.ts';
import { identifyCaller, mapCaller, principalOf } from '../../src/http/auth/callers.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { clientFrame } from '../support/frames.ts';

const CLOSE: ToolShape = {
  ...{ name: undefined, title: undefined, description: undefined, isHidden: false },
  callers: ['token:alice'],
};

test('the callers of a tool are known by their names also where the aggregate has added headers to them', (t) => {
  const tools = { include: [], exclude: [], shapes: new Map([['close', CLOSE]]) };
  const view = createToolView({ tools }, createTestDeps().deps);
  const request = { headersDistinct: { 'x-user': ['one'] } } as unknown as IncomingMessage;
  identifyCaller(request, 'token:alice');
  mapCaller(request, [{ header: 'x-user', variable: 'x-user' }]);
  const call = clientFrame({ id: 1, method: 'tools/call', params: { name: 'close', arguments: {} } });
  const isShownTo = (principal: string | undefined) => view?.toServer(call, principal) === call;
  t.true(isShownTo('token:alice'));
  t.true(isShownTo(principalOf(request)));
  t.false(isShownTo('token:bob'));
  t.false(isShownTo(undefined));
});
