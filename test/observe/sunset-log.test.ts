import test from 'ava';
import { pino } from 'pino';
import { SunsetLog } from '../../src/observe/sunset-log.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { client } from '../support/observed.ts';

const NOON_MS = Date.UTC(2027, 2, 30, 12);
const HOUR_MS = 60 * 60_000;
const SUNSET = { date: '2027-03-31', atMs: Date.UTC(2027, 2, 31, 23, 59, 59) };
const OLD = { transport: 'http-sse', revision: '2024-11-05' } as const;

/** A log, and time that passes for clocks and calendars alike. */
function create() {
  const clock = new FakeClock();
  const lines: { readonly msg: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const wallClock = () => NOON_MS + clock.now();
  const observer = new SunsetLog({ log, clock, wallClock, sunset: SUNSET });
  return { clock, observer, said: () => lines.splice(0).map(({ msg }) => msg), lines };
}

test('names a client once a day, however often it connects', (t) => {
  const { clock, observer, said } = create();
  for (let count = 0; count < 3; count += 1) observer.connected(client(OLD))?.('ERR_SESSION_CLOSED');
  t.deepEqual(said(), [
    'cursor 0.42 uses everything by HTTP+SSE, which ends here (2027-03-31); it has to use Streamable HTTP',
  ]);
  observer.connected(client({ ...OLD, version: '0.43' }));
  observer.connected(client({ ...OLD, server: 'weather' }));
  t.is(said().length, 2, 'another version, and another server');
  clock.advance(13 * HOUR_MS);
  said();
  observer.connected(client(OLD));
  t.is(said().length, 1, 'the next day');
  observer.close();
  t.is(clock.pendingTimers, 0);
});

test('names those again who stay connected from one day to the next, and no others', (t) => {
  const { clock, observer, said } = create();
  observer.connected(client({ ...OLD, name: 'goes' }))?.('ERR_SESSION_CLOSED');
  observer.connected(client({ ...OLD, name: 'stays' }));
  said();
  clock.advance(11 * HOUR_MS);
  t.deepEqual(said(), [], 'it is the same day');
  clock.advance(2 * HOUR_MS);
  t.deepEqual(
    said().map((line) => line.split(' ')[0]),
    ['stays'],
  );
  observer.close();
});

test('says after the date that it should have ended, and once a day that somebody was refused', (t) => {
  const { clock, observer, said } = create();
  clock.advance(37 * HOUR_MS);
  observer.connected(client(OLD));
  for (let count = 0; count < 3; count += 1) observer.refused(client(OLD), 'ERR_HTTP_GONE');
  t.deepEqual(said(), [
    'cursor 0.42 uses everything by HTTP+SSE, which should have ended here (2027-03-31); it has to use Streamable HTTP',
    'clients of HTTP+SSE still come to everything and are refused: it has ended (2027-03-31)',
  ]);
  observer.close();
});

test('says nothing of other transports and other refusals', (t) => {
  const { observer, said } = create();
  observer.connected(client());
  observer.refused(client(), 'ERR_HTTP_GONE');
  observer.refused(client(OLD), 'ERR_SESSION_LIMIT');
  t.deepEqual(said(), []);
  observer.close();
});

test('is bounded, and says so once', (t) => {
  const { observer, said } = create();
  for (let count = 0; count < 1100; count += 1) observer.connected(client({ ...OLD, name: `client ${count}` }));
  t.is(said().length, 1001);
  observer.close();
});
