import test, { type ExecutionContext } from 'ava';
import { EventSource } from 'eventsource';
import { pino } from 'pino';
import { NO_TIMEOUTS } from '../../../src/http/client/call-limits.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { EventStreamReader } from '../../../src/upstream/remote/event-stream-reader.ts';
import { CallerHeaders } from '../../../src/upstream/remote/remote-environment.ts';
import { listenScripted, openStream } from '../../fixtures/http-servers/scripted.ts';
import { createClient } from '../../http/recorded-call.ts';
import { waitFor } from '../../support/wait-for.ts';

// Not compared, for eventsource does otherwise than the standard: an id without data counts, and ids travel as UTF-8.

/** What each connection of a client brings, in chunks; the last one stays open. */
type Connections = readonly (readonly string[])[];

/** What a client has heard, and from where it asked to go on with each connection. */
interface Heard {
  readonly events: string[];
  readonly resumedFrom: unknown[];
}

const RETRY = 'retry: 10\n\n';

interface Case {
  readonly title: string;
  readonly connections: Connections;
  /** How many events that makes. */
  readonly events: number;
}

const CASES: readonly Case[] = [
  {
    title: 'events in pieces, with comments, types and all ends of lines',
    connections: [
      [`:hello\n${RETRY}data: o`, 'ne\r', '\n\r\nevent: odd\rdata:two\r\rdata\ndata: three\n\n', 'data: unfinished'],
      ['data: four\n\n'],
    ],
    events: 4,
  },
  {
    title: 'ids that outlive connections and are taken back',
    connections: [
      [`${RETRY}id: a\ndata: 1\n\n`, 'data: 2\n\n'],
      ['data: 3\n\n'],
      ['id: b/7\ndata: 4\n\n'],
      ['id\ndata: 5\n\n'],
      ['data: 6\n\n'],
    ],
    events: 6,
  },
  {
    title: 'the id of an unfinished event, one with a NUL, and one after a byte order mark',
    connections: [
      [RETRY, 'data: 1\n\nid: b\ndata: never'],
      ['id: c\0\ndata: 2\n\n'],
      ['\ufeffid: d\ndata: 3\n\n'],
      ['data: \u{1f600}\n\n'],
    ],
    events: 4,
  },
];

async function hear(
  t: ExecutionContext,
  { connections, events }: Case,
  listen: (url: URL, heard: Heard) => () => void,
): Promise<Heard> {
  const heard: Heard = { events: [], resumedFrom: [] };
  const server = await listenScripted({
    GET: async (asked, response) => {
      const isLast = heard.resumedFrom.push(asked.headers['last-event-id']) === connections.length;
      openStream(response);
      for (const chunk of connections[heard.resumedFrom.length - 1] ?? []) {
        await new Promise<void>((resolve) => void response.write(chunk, () => resolve()));
      }
      if (!isLast) response.end();
    },
  });
  const close = listen(server.url, heard);
  t.teardown(async () => {
    close();
    await server.close();
  });
  await waitFor(() => heard.resumedFrom.length === connections.length);
  await waitFor(() => heard.events.length === events);
  return heard;
}

function listenAsEventSource(url: URL, { events }: Heard): () => void {
  const source = new EventSource(url);
  for (const type of ['message', 'odd']) {
    source.addEventListener(type, ({ data }) => void events.push(`${type} ${JSON.stringify(data)}`));
  }
  return () => source.close();
}

function listenAsBridge(url: URL, { events }: Heard): () => void {
  const http = createClient();
  const stream = new EventStreamReader({
    http,
    url,
    headers: {},
    cookies: new SessionCookies(),
    caller: new CallerHeaders(),
    timeouts: NO_TIMEOUTS,
    maxMessageBytes: 10_000,
    reconnects: true,
    isPaused: false,
    log: pino({ level: 'silent' }),
    listener: {
      opened: () => {},
      event: ({ event, data }) => void events.push(`${event} ${JSON.stringify(data.toString())}`),
      oversized: () => {},
      notReopened: () => undefined,
      ended: () => {},
    },
  });
  return () => {
    stream.close();
    http.close();
  };
}

for (const one of CASES) {
  test(`hears and resumes as eventsource does: ${one.title}`, async (t) => {
    const expected = await hear(t, one, listenAsEventSource);
    t.deepEqual(await hear(t, one, listenAsBridge), expected);
  });
}
