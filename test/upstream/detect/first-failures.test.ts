import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { loginError } from '../../../src/http/login/login-error.ts';
import { FirstFailures, REPEATED_MS } from '../../../src/upstream/detect/detection-errors.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const WARN = 40;
const REFUSED = new BridgeError('ERR_UPSTREAM_AUTH', 'requires authorization');
const GONE = new BridgeError('ERR_UPSTREAM_CONNECT', 'nothing listens there');

function createFailures() {
  const clock = new FakeClock();
  const { log, entries } = collectLog();
  const warnings = () => entries.filter(({ level }) => level === WARN).map(({ msg }) => msg);
  return { failures: new FirstFailures({ clock, log }), clock, warnings };
}

test('that credentials are missing is told once for attempts that follow each other, and again after a while', (t) => {
  const { failures, clock, warnings } = createFailures();
  failures.tell(REFUSED);
  clock.advance(REPEATED_MS - 1);
  failures.tell(REFUSED);
  t.is(warnings().length, 1);
  clock.advance(1);
  failures.tell(REFUSED);
  t.is(warnings().length, 2);
});

test('any other failure is told each time', (t) => {
  const { failures, warnings } = createFailures();
  for (const error of [REFUSED, GONE, GONE, REFUSED]) failures.tell(error);
  t.deepEqual(warnings(), [REFUSED.message, GONE.message, GONE.message, REFUSED.message]);
});

test('what became of a login is told by the login', (t) => {
  const { failures, warnings } = createFailures();
  failures.tell(loginError('The login was refused', ''));
  t.deepEqual(warnings(), []);
});
