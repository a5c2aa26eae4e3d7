import test from 'ava';
import type { SeatHost } from '../../../src/relay/shared/seat.ts';
import { Seat } from '../../../src/relay/shared/seat.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { GONE } from './shared-bridge.ts';

class FakeHost implements SeatHost {
  readonly taken: Frame[] = [];
  leavings = 0;
  hasRoom = true;

  fromSeat(_seat: Seat, frame: Frame): boolean {
    this.taken.push(frame);
    return this.hasRoom;
  }

  leave(): void {
    this.leavings += 1;
  }
}

test('a seat passes on what its client says, and whether there is room', (t) => {
  const host = new FakeHost();
  const seat = new Seat(host, new FakeServerListener(), new FakeClock());
  const frame = clientFrame({ method: 'x-vendor/event' });
  t.true(seat.send(frame));
  host.hasRoom = false;
  t.false(seat.send(frame));
  t.deepEqual(host.taken, [frame, frame]);
});

test('initialized is noted, not passed on: the server has had its own', (t) => {
  const host = new FakeHost();
  const seat = new Seat(host, new FakeServerListener(), new FakeClock());
  t.false(seat.isInitialized);
  seat.send(clientFrame({ method: 'notifications/initialized' }));
  t.true(seat.isInitialized);
  t.deepEqual(host.taken, []);
});

test('a seat is left once, and nothing is passed on after that', (t) => {
  const host = new FakeHost();
  const seat = new Seat(host, new FakeServerListener(), new FakeClock());
  seat.close(GONE);
  seat.close(GONE);
  t.is(host.leavings, 1);
  t.true(seat.send(clientFrame({ method: 'x-vendor/event' })));
  t.deepEqual(host.taken, []);
});

test('a slow client does not stop the server', (t) => {
  const seat = new Seat(new FakeHost(), new FakeServerListener(), new FakeClock());
  t.notThrows(() => seat.pause());
  t.notThrows(() => seat.resume());
});

for (const [title, params, expected] of [
  ['what it asked for', { protocolVersion: '2025-03-26', capabilities: { roots: {} } }, ['2025-03-26', { roots: {} }]],
  ['a revision nobody knows', { protocolVersion: '1.0', capabilities: {} }, ['2025-11-25', {}]],
  ['nothing', undefined, ['2025-11-25', {}]],
] as const) {
  test(`a client that says ${title} is introduced as ${JSON.stringify(expected)}`, (t) => {
    const seat = new Seat(new FakeHost(), new FakeServerListener(), new FakeClock());
    t.false(seat.isIntroduced);
    seat.introduce(clientFrame({ id: 1, method: 'initialize', params }), '2025-11-25');
    t.true(seat.isIntroduced);
    t.deepEqual([seat.revisionId, seat.capabilities], [...expected]);
  });
}
