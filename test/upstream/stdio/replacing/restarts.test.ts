import test from 'ava';
import { type FileChange, Restarts } from '../../../../src/upstream/stdio/replacing/restarts.ts';
import { collectLog } from '../../../process/collected-log.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function createRestarts() {
  const { log, entries } = collectLog();
  const watches: ((change: FileChange) => void)[] = [];
  let closed = 0;
  const restarts = new Restarts({
    watch(changed) {
      watches.push(changed);
      return {
        async close() {
          closed += 1;
        },
      };
    },
    name: 'node server.js',
    graceMs: 4000,
    handshakeTimeoutMs: 0,
    clientInfo: { name: 'test', version: '1' },
    deps: { clock: new FakeClock(), log, randomId: () => 'id' },
  });
  return { restarts, watches, entries, closed: () => closed };
}

test('files are watched from the first connector to the end of the last', async (t) => {
  const { restarts, watches, closed } = createRestarts();
  t.is(watches.length, 0);
  const leave = [restarts.join(() => {}), restarts.join(() => {})];
  t.is(watches.length, 1);
  await leave[0]?.();
  t.is(closed(), 0);
  await leave[1]?.();
  t.is(closed(), 1);
});

test('a change without a process is logged, and connectors are told that nothing is restarted', (t) => {
  const { restarts, watches, entries } = createRestarts();
  const told: number[] = [];
  restarts.join((restarted) => told.push(restarted));
  watches[0]?.({ example: 'src/a.js', files: 3 });
  t.deepEqual(told, [0]);
  t.is(
    entries.at(-1)?.msg,
    'src/a.js and 2 other files changed; node server.js is not running, and is started for its next client',
  );
});
