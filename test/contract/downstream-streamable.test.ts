import test from 'ava';
import type { EventReader } from '../support/event-reader.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { type HttpSession, openStreamable } from '../support/legacy-clients.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';
import { Inbox } from './inbox.ts';

/** With a GET stream open, as ordinary clients have. */
async function connect(harness: HttpHarness, revision: string): Promise<ContractClient> {
  const session = await openStreamable(harness, revision);
  const inbox = new Inbox();
  const stream = (await session.get()).events();
  void collect(stream, inbox);
  return {
    connection: session.connection,
    // A connection may end with the session before all of it has been read: what lacks then, is waited for in vain.
    send: (message) => void sendAndCollect(session, message, inbox).catch(() => undefined),
    next: () => inbox.next(),
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    leave: () => void session.delete().catch(() => undefined),
    over: stream.closed,
  };
}

async function sendAndCollect(session: HttpSession, message: object | string, inbox: Inbox): Promise<void> {
  const answer = await session.post(message);
  if (answer.isEventStream) return collect(answer.events(), inbox);
  const body = await answer.text();
  if (body !== '') inbox.put(body);
}

async function collect(events: EventReader, inbox: Inbox): Promise<void> {
  try {
    for (;;) {
      const { data } = await events.next();
      // A priming event carries no message.
      if (data !== '') inbox.put(data);
    }
  } catch {
    // The stream has ended.
  }
}

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  testDownstreamContract(test, {
    name: `Streamable HTTP of ${revision}`,
    async start(t) {
      const harness = await startHttpHarness(t);
      return { clock: harness.clock, sessions: harness.sessions, connect: () => connect(harness, revision) };
    },
  });
}
