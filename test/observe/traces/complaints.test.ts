import test from 'ava';
import { pino } from 'pino';
import { Complaints, reasonOf } from '../../../src/observe/traces/complaints.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function complain() {
  const lines: string[] = [];
  const clock = new FakeClock();
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  return { lines, clock, complaints: new Complaints(log, clock) };
}

test('each setting that is wrong is told, and afterward one loss a minute', (t) => {
  const { lines, clock, complaints } = complain();
  complaints.tell('one setting');
  complaints.tell('another setting');
  complaints.started();
  for (let second = 0; second < 180; second += 1) {
    complaints.tell(`loss ${second}`);
    clock.advance(1000);
  }
  t.deepEqual(lines, [
    'traces: one setting',
    'traces: another setting',
    'traces: loss 0',
    'traces: loss 60',
    'traces: loss 120',
  ]);
});

test('nothing is told after the end, and no timer stays', (t) => {
  const { lines, clock, complaints } = complain();
  complaints.started();
  complaints.tell('a loss');
  complaints.close();
  clock.advance(120_000);
  complaints.tell('too late');
  t.is(lines.length, 1);
});

test('what others say is short and hides nothing from a terminal', (t) => {
  const { lines, complaints } = complain();
  complaints.tell(`\u001b[2J${'x'.repeat(1000)}`);
  t.false(lines[0]?.includes('\u001b'));
  t.true((lines[0]?.length ?? 0) < 250);
});

test('a loss is told by a status or a code, never by what a collector wrote', (t) => {
  t.is(
    reasonOf(Object.assign(new Error('a word of its own'), { code: 401 })),
    'spans are lost: the collector answered 401',
  );
  t.is(reasonOf(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })), 'spans are lost: ECONNREFUSED');
  t.is(reasonOf(new Error('Request timed out')), 'spans are lost: Request timed out');
  t.is(reasonOf('nonsense'), 'spans are lost: the export failed');
});
