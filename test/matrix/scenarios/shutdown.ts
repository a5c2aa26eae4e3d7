import { assertGone } from '../../support/processes.ts';
import { waitFor } from '../../support/wait-for.ts';
import { recordOf } from '../cell.ts';
import type { Scenario } from '../scenario.ts';
import type { RecordEntry } from '../servers.ts';

const HARMLESS = new Set<unknown>(['trace', 'debug', 'info']);

const sessionsOf = (entries: readonly RecordEntry[], ...kinds: readonly RecordEntry['kind'][]) =>
  new Set(entries.filter(({ kind }) => kinds.includes(kind)).map(({ session }) => session));

function isNoneOpen(entries: readonly RecordEntry[]): boolean {
  const closed = sessionsOf(entries, 'closed');
  return [...sessionsOf(entries, 'opened')].every((session) => closed.has(session));
}

export const SHUTDOWN: readonly Scenario[] = [
  {
    title: 'neither the client nor the bridge has complained about anything so far',
    needs: ['calls'],
    async run(t, cell) {
      const { front } = await cell.running();
      for (const client of await cell.clients()) t.deepEqual(client.faults, []);
      t.deepEqual(
        front.logs.filter(({ level }) => !HARMLESS.has(level)),
        [],
      );
    },
  },
  {
    title: 'a client that leaves ends its own session at the server',
    needs: ['ownSession'],
    async run(t, cell) {
      const leaver = await cell.connected('leaver');
      const { session } = await recordOf(leaver);
      await leaver.close();
      const { server } = await cell.running();
      const { look } = server;
      t.pass();
      if (look === undefined) return;
      await waitFor(async () => sessionsOf((await look()).entries, 'deleted', 'closed').has(session), {
        message: 'the server to see the end of the session',
      });
    },
  },
  {
    title: 'a client that leaves takes nobody with it',
    needs: ['calls'],
    async run(t, cell) {
      const leaver = await cell.connected('incapable', { capabilities: {} });
      const stayer = await cell.main();
      t.is((await leaver.callTool('echo', { value: 'leaving' })).text, 'leaving');
      await leaver.close();
      t.is((await stayer.callTool('echo', { value: 'still there' })).text, 'still there');
    },
  },
  {
    title: 'when all clients and the bridge have ended no session, connection or process is left',
    needs: ['calls'],
    async run(t, cell) {
      const { server, front } = await cell.running();
      const processes = front.processes();
      t.true(processes.length > 0);
      for (const client of await cell.clients()) await client.close();
      await front.stop();
      await assertGone(processes);
      t.deepEqual(
        front.logs.filter(({ msg }) => /SIGTERM|SIGKILL/.test(msg ?? '') && !/shutting down/.test(msg ?? '')),
        [],
      );
      const { look } = server;
      if (look === undefined) return;
      // The bridge waits for the server for two seconds at most; a busy one takes notice later.
      await waitFor(async () => isNoneOpen((await look()).entries), { message: 'all sessions to end' });
      await waitFor(async () => (await look()).connections === 0, { message: 'all connections to close' });
      await server.stop();
    },
  },
];
