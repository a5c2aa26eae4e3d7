import test from 'ava';
import type { InputQuestion } from '../../../src/eras/modern-to-legacy/open-questions.ts';
import {
  type CallObserver,
  PARK_MS,
  ParkedCall,
  RETENTION_MS,
} from '../../../src/eras/modern-to-legacy/parked-call.ts';
import { PARKING_LIMITS, ParkedCalls } from '../../../src/eras/modern-to-legacy/parked-calls.ts';
import { RequestStates } from '../../../src/eras/modern-to-legacy/request-state.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { clientFrame } from '../../support/frames.ts';

const OUTCOME = resultFrame(0, { resultType: 'complete' });
const FAILURE = resultFrame(0, { resultType: 'lost' });
const ANSWERS = { 'roots-1': { roots: [] }, 'roots-2': { roots: [] }, 'roots-3': { roots: [] } };

/** A call with everything it does written down. */
class Trial {
  readonly clock = new FakeClock();
  readonly calls = new ParkedCalls<ParkedCall<CallObserver>>();
  readonly did: string[] = [];
  readonly questions: InputQuestion[] = [];
  readonly first = this.observer('first');
  readonly call: ParkedCall<CallObserver> = new ParkedCall({
    createId: () => 'c',
    principal: 'ada',
    requestBytes: 10,
    digest: () => 'd',
    clock: this.clock,
    states: new RequestStates(this.clock),
    calls: this.calls,
    host: {
      joined: () => {},
      proceed: () => void this.did.push('goes on'),
      waiting: () => {},
      over: () => void this.did.push('let go'),
    },
  });

  constructor() {
    this.call.attach(this.first);
  }

  observer(name: string): CallObserver {
    return { settle: (outcome) => void this.did.push(`${name}: ${typeOf(outcome)}`) };
  }

  ask(): void {
    const n = this.questions.length + 1;
    const question: InputQuestion = {
      method: 'roots/list',
      request: Buffer.from('{"method":"roots/list"}'),
      answer: () => void this.did.push(`answers ${n}`),
      refuse: () => void this.did.push(`refuses ${n}`),
      keepAlive: undefined,
    };
    this.questions.push(question);
    this.call.asked(question);
  }

  retry(round: number, inputResponses: object = ANSWERS): void {
    const request = clientFrame({ id: 1, method: 'tools/call', params: { inputResponses } });
    if (!this.call.retry(round, request, this.observer('retry'))) this.did.push('nothing to come back to');
  }

  /** Forgets what was done so far. */
  reset(): this {
    this.did.length = 0;
    return this;
  }
}

function typeOf(outcome: Frame): string {
  return (outcome.json() as { result: { resultType: string } }).result.resultType;
}

const starts = {
  running: (trial: Trial) => trial,
  collecting: (trial: Trial) => {
    trial.ask();
    return trial;
  },
  /** In its second round, so that there is an older one. */
  parked: (trial: Trial) => {
    trial.ask();
    trial.clock.advance(25);
    trial.retry(1);
    trial.ask();
    trial.clock.advance(25);
    return trial;
  },
  held: (trial: Trial) => {
    starts.parked(trial).call.finished(OUTCOME);
    return trial;
  },
  dead: (trial: Trial) => {
    trial.call.detach(trial.first);
    return trial;
  },
} as const;

const events = {
  'the server asks': (trial: Trial) => trial.ask(),
  'the window passes': (trial: Trial) => trial.clock.advance(25),
  'the server answers': (trial: Trial) => trial.call.finished(OUTCOME),
  'a retry of this round': (trial: Trial) => trial.retry(trial.call.round),
  'a retry of an older round': (trial: Trial) => trial.retry(trial.call.round - 1),
  'a retry without the answers': (trial: Trial) => trial.retry(trial.call.round, {}),
  'the client leaves': (trial: Trial) => trial.call.detach(trial.first),
  'the server withdraws its question': (trial: Trial) => {
    const question = trial.questions.at(-1);
    if (question !== undefined) trial.call.withdrawn(question);
  },
  'the time to answer passes': (trial: Trial) => trial.clock.advance(PARK_MS),
  'the time to keep it passes': (trial: Trial) => trial.clock.advance(RETENTION_MS),
  'the session is lost': (trial: Trial) => trial.call.lost(FAILURE),
} as const;

type State = keyof typeof starts;
type Row = readonly [State, keyof typeof events, end: State | 'done', did: readonly string[]];

const told = 'first: input_required';

const table: readonly Row[] = [
  ['running', 'the server asks', 'collecting', []],
  ['collecting', 'the server asks', 'collecting', []],
  ['parked', 'the server asks', 'parked', []],
  ['held', 'the server asks', 'held', ['refuses 3']],
  ['dead', 'the server asks', 'dead', ['refuses 1']],

  ['running', 'the window passes', 'running', []],
  ['collecting', 'the window passes', 'parked', [told]],
  ['parked', 'the window passes', 'parked', []],

  ['running', 'the server answers', 'done', ['let go', 'first: complete']],
  ['collecting', 'the server answers', 'done', ['let go', 'first: complete']],
  ['parked', 'the server answers', 'held', ['let go']],
  ['held', 'the server answers', 'held', []],
  ['dead', 'the server answers', 'dead', []],

  ['running', 'a retry of this round', 'running', []],
  ['collecting', 'a retry of this round', 'collecting', []],
  ['parked', 'a retry of this round', 'running', ['answers 2', 'goes on']],
  ['held', 'a retry of this round', 'held', ['retry: complete']],
  ['dead', 'a retry of this round', 'dead', ['nothing to come back to']],

  ['parked', 'a retry of an older round', 'parked', ['retry: input_required']],
  ['held', 'a retry of an older round', 'held', ['retry: complete']],
  ['parked', 'a retry without the answers', 'parked', ['retry: input_required']],

  ['running', 'the client leaves', 'dead', ['let go']],
  ['collecting', 'the client leaves', 'dead', ['refuses 1', 'let go']],
  ['parked', 'the client leaves', 'parked', []],
  ['held', 'the client leaves', 'held', []],

  ['running', 'the server withdraws its question', 'running', []],
  ['collecting', 'the server withdraws its question', 'running', []],
  ['parked', 'the server withdraws its question', 'parked', []],

  ['running', 'the time to answer passes', 'running', []],
  ['parked', 'the time to answer passes', 'dead', ['refuses 2', 'let go']],
  ['held', 'the time to keep it passes', 'dead', []],

  ['running', 'the session is lost', 'dead', ['let go', 'first: lost']],
  ['collecting', 'the session is lost', 'dead', ['let go', 'first: lost']],
  ['parked', 'the session is lost', 'dead', ['let go']],
  ['held', 'the session is lost', 'held', []],
];

for (const [start, event, end, did] of table) {
  test(`${start}, ${event}: ${[...did, end].join(', ')}`, (t) => {
    const trial = starts[start](new Trial()).reset();
    events[event](trial);
    t.deepEqual(trial.did, did);
    t.is(trial.call.state, end);
    if (end !== 'running') t.is(trial.calls.size, end === 'done' || end === 'dead' ? 0 : 1);
  });
}

test('the window is restarted by each question, and closes in any case', (t) => {
  const trial = new Trial();
  for (let n = 0; n < 10; n++) {
    trial.ask();
    trial.clock.advance(20);
  }
  t.is(trial.did[0], told);
  t.is(trial.questions.length, 10);
  t.is(trial.call.round, 1);
});

test('a call has an end, however many rounds it takes', (t) => {
  const trial = new Trial();
  trial.ask();
  for (let round = 1; round <= 20; round++) {
    trial.clock.advance(PARK_MS - 1000);
    trial.retry(round, {});
  }
  t.is(trial.call.state, 'dead');
  t.is(trial.clock.pendingTimers, 0);
});

test('an outcome that is given up leaves nothing behind, and who comes back for it is told why', (t) => {
  const trial = starts.held(new Trial());
  t.is(trial.calls.outcomes.bytes, OUTCOME.bytes.length + 10);
  trial.calls.outcomes.keep({ id: 'other', principal: 'ada', bytes: PARKING_LIMITS.bytes, giveUp: () => {} });
  t.is(trial.call.state, 'dead');
  t.is(trial.calls.size, 0);
  t.is(trial.clock.pendingTimers, 0);
  t.is(trial.calls.lossOf('c', 'ada'), 'state_given_up');
  t.is(trial.calls.lossOf('c', 'bob'), 'state_lost');
});

test('what is over is not kept, and no timer either', (t) => {
  for (const start of ['parked', 'held', 'dead'] as const) {
    const trial = starts[start](new Trial());
    trial.clock.advance(PARK_MS);
    t.is(trial.calls.size, 0, start);
    t.is(trial.calls.outcomes.bytes, 0, start);
    t.is(trial.clock.pendingTimers, 0, start);
  }
});
