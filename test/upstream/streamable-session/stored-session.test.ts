import test, { type ExecutionContext } from 'ava';
import { SHUTTING_DOWN } from '../../../src/errors.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { Call } from '../../../src/relay/call.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import { IdWarnings } from '../../../src/upstream/answer-ids.ts';
import { CallerHeaders } from '../../../src/upstream/remote/remote-environment.ts';
import { StreamableLink } from '../../../src/upstream/streamable-session/link.ts';
import type { Frame, JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { FakeLane } from '../../support/fake-peers.ts';
import { type SdkHttpServer, startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';
import { dialerOptions } from '../remote-dialers.ts';

/** A link of a bridge that shares nothing with any other but what is stored. */
function openLink(t: ExecutionContext, url: URL, session: SessionState) {
  const { deps, ...remote } = dialerOptions(url);
  const listener = new RecordingServerListener();
  const link = new StreamableLink({
    environment: {
      ...remote,
      cookies: new SessionCookies(),
      caller: new CallerHeaders(),
      idWarnings: new IdWarnings('server', deps.log),
      log: deps.log,
    },
    session,
    reachable: () => {},
    // As of a bridge that is gone without a word: the session goes on at the server.
    left: () => {},
  });
  link.listener = listener;
  const close = (): void => {
    link.close(SHUTTING_DOWN);
    remote.http.close();
  };
  t.teardown(close);
  const request = (id: JsonRpcId, method: string, params: object): Promise<Record<string, unknown>> => {
    link.send(requestFrame(id, method, params), new Call(id, method, new FakeLane(), undefined, 0));
    return listener.answerTo(id);
  };
  return {
    link,
    listener,
    close,
    request,
    /** What the tool `state` of the contract server says. */
    stateAtServer: async (id: JsonRpcId) => {
      const { result } = await request(id, 'tools/call', { name: 'state' });
      const { pid: _, ...state } = JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? '');
      return state;
    },
  };
}

/** A session with a level and a subscription, whose bridge has stored it and is gone. */
async function storeSession(t: ExecutionContext): Promise<{ server: SdkHttpServer; stored: string }> {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const session = new SessionState();
  const { link, request, close } = openLink(t, server.url, session);
  const clientInfo = { name: 'client', version: '1' };
  await request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  link.send(notificationFrame('notifications/initialized'));
  await request(2, 'logging/setLevel', { level: 'error' });
  await request(3, 'resources/subscribe', { uri: 'test://a' });
  const stored = JSON.stringify(session);
  close();
  server.cut();
  return { server, stored };
}

const UPDATED = 'notifications/resources/updated';
const STATE = { cancellations: 0, level: 'error', subscriptions: ['test://a'] };

test('a session that was stored goes on elsewhere as the same session of the server', async (t) => {
  const { server, stored } = await storeSession(t);
  const [id] = server.sessions.keys();
  const asked = server.asked.length;
  const { stateAtServer } = openLink(t, server.url, SessionState.from(stored));
  t.deepEqual(await stateAtServer(1), STATE);
  t.deepEqual([...server.sessions.keys()], [id]);
  for (const { headers } of server.asked.slice(asked)) {
    t.like(headers, { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' });
  }
});

test('a client looks again at what the server may have told while no bridge listened', async (t) => {
  const { server, stored } = await storeSession(t);
  // The server tells it to nobody: its session has no stream now.
  const between = openLink(t, server.url, new SessionState());
  const clientInfo = { name: 'another', version: '1' };
  await between.request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  await between.request(2, 'tools/call', { name: 'touch', arguments: { uri: 'test://a' } });
  const { listener, request } = openLink(t, server.url, SessionState.from(stored));
  const told = ['notifications/tools/list_changed', 'notifications/resources/list_changed', UPDATED];
  await waitFor(() => listener.frames.length >= told.length, { message: 'the client to be told to look again' });
  t.deepEqual(
    listener.frames.map(({ method }) => method),
    told,
  );
  // From then on the server is listened to.
  await request(1, 'tools/call', { name: 'touch', arguments: { uri: 'test://a' } });
  await waitFor(() => listener.frames.filter(({ method }) => method === UPDATED).length === 2, {
    message: 'the server to tell of the next change',
  });
});

test('where the server has forgotten it there is a new one with the level and the subscriptions', async (t) => {
  const { server, stored } = await storeSession(t);
  await server.forget();
  const session = SessionState.from(stored);
  const { stateAtServer, listener } = openLink(t, server.url, session);
  t.deepEqual(await stateAtServer(1), STATE);
  t.deepEqual([...server.sessions.keys()], [session.sessionId]);
  t.not(session.sessionId, SessionState.from(stored).sessionId);
  t.deepEqual(
    listener.frames.map(({ method, id }) => method ?? id),
    ['notifications/tools/list_changed', 'notifications/resources/list_changed', 'notifications/resources/updated', 1],
  );
});

test('a session that was renewed elsewhere is stored as the new one, and what was unsubscribed stays so', async (t) => {
  const { server, stored } = await storeSession(t);
  await server.forget();
  const session = SessionState.from(stored);
  const second = openLink(t, server.url, session);
  await second.request(1, 'resources/unsubscribe', { uri: 'test://a' });
  second.close();
  server.cut();
  const third = openLink(t, server.url, SessionState.from(JSON.stringify(session)));
  t.deepEqual(await third.stateAtServer(1), { ...STATE, subscriptions: [] });
  t.deepEqual([...server.sessions.keys()], [session.sessionId]);
});

test('a call that another bridge has sent is answered from the event on that was passed on last', async (t) => {
  const server = await startStreamable({ hasEventStore: true });
  t.teardown(() => server.close());
  const session = new SessionState();
  const moved: string[] = [];
  session.positions = { moved: (_, lastEventId) => moved.push(lastEventId), over: () => {}, isResumable: () => false };
  const first = openLink(t, server.url, session);
  const clientInfo = { name: 'client', version: '1' };
  const capabilities = { sampling: {} };
  await first.request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
  first.link.send(notificationFrame('notifications/initialized'));
  const asking = { name: 'ask', arguments: { prompt: 'Who?' } };
  void first.request('asking', 'tools/call', asking).catch(() => undefined);
  const isQuestion = ({ method }: Frame): boolean => method === 'sampling/createMessage';
  const asked = await waitFor(() => first.listener.frames.find(isQuestion), { message: 'the question' });
  const lastEventId = moved.at(-1) ?? '';
  const stored = JSON.stringify(session);
  first.close();
  server.cut();

  const resumed = SessionState.from(stored);
  const request = requestFrame('asking', 'tools/call', { name: 'ask' });
  resumed.resumes({ request, lastEventId });
  const posts = (): number => server.asked.filter(({ method }) => method === 'POST').length;
  const before = posts();
  const second = openLink(t, server.url, resumed);
  second.link.send(request, new Call('asking', 'tools/call', new FakeLane(), undefined, 0));
  const content = { type: 'text', text: 'Ada' };
  second.link.send(resultFrame(asked.id ?? '', { role: 'assistant', model: 'model', content }));
  const { result } = await second.listener.answerTo('asking');
  t.deepEqual(result, { content: [content] });
  t.false(second.listener.frames.some(isQuestion));
  // That is the answer of the client. The call was not sent again.
  t.is(posts(), before + 1);
});
