import test from 'ava';
import { MAX_ASKED_AT_ONCE } from '../../../../src/eras/asking-limits.ts';
import {
  COALESCING_MS,
  type Follower,
  PARK_MS,
  ParkedCall,
  RETENTION_MS,
} from '../../../../src/eras/modern-to-legacy/questions/parked-call.ts';
import {
  PARKING_LIMITS,
  ParkedCalls,
  type ParkingLimits,
} from '../../../../src/eras/modern-to-legacy/questions/parked-calls.ts';
import type { InputQuestion } from '../../../../src/eras/modern-to-legacy/questions/questions.ts';
import { RequestStates } from '../../../../src/eras/modern-to-legacy/questions/request-state.ts';
import type { Frame } from '../../../../src/wire/frame.ts';
import { resultFrame } from '../../../../src/wire/write-message.ts';
import type { FakeClock } from '../../../support/fake-clock.ts';
import { createFakeDeps } from '../../../support/fake-peers.ts';
import { clientFrame } from '../../../support/frames.ts';

const REQUEST = clientFrame({ id: 1, method: 'tools/call', params: {} });
const REQUEST_BYTES = REQUEST.bytes.length;
const ASKED_BYTES = 50;
const QUESTION = Buffer.from('{"method":"roots/list"}');
/** As it came, as it is told, and as it was told. */
const QUESTION_BYTES = ASKED_BYTES + 2 * QUESTION.length;
const OUTCOME = resultFrame(0, { resultType: 'complete' });
const FAILURE = resultFrame(0, { resultType: 'lost' });
const ANSWERS = { 'roots-1': { roots: [] }, 'roots-2': { roots: [] }, 'roots-3': { roots: [] } };

/** A call with everything it does written down. */
class Trial {
  readonly deps = { ...createFakeDeps(), randomId: () => 'c' };
  readonly calls: ParkedCalls<ParkedCall>;
  readonly did: string[] = [];
  readonly questions: InputQuestion[] = [];
  readonly first = this.follower('first');
  readonly call: ParkedCall;

  constructor(limits: ParkingLimits = PARKING_LIMITS) {
    this.calls = new ParkedCalls(limits);
    this.call = new ParkedCall({
      services: {
        deps: this.deps,
        states: new RequestStates(this.clock),
        calls: this.calls,
        outcomes: undefined,
      },
      principal: 'ada',
      request: REQUEST,
      serverInfo: undefined,
      first: this.first,
      host: {
        followed: () => {},
        proceed: () => void this.did.push('goes on'),
        over: () => void this.did.push('let go'),
        forgotten: () => {},
        continuation: () => undefined,
        handedOver: () => {},
      },
    });
  }

  get clock(): FakeClock {
    return this.deps.clock;
  }

  follower(name: string): Follower {
    return {
      logLevel: undefined,
      progressToken: undefined,
      declaresTasks: false,
      notify: () => {},
      serverDrained: () => {},
      settle: (outcome) => void this.did.push(`${name}: ${typeOf(outcome)}`),
    };
  }

  ask(): void {
    const n = this.questions.length + 1;
    const question: InputQuestion = {
      method: 'roots/list',
      request: QUESTION,
      askedBytes: ASKED_BYTES,
      source: undefined,
      answer: () => void this.did.push(`answers ${n}`),
      refuse: () => void this.did.push(`refuses ${n}`),
      keepAlive: undefined,
    };
    this.questions.push(question);
    this.call.askClient(question);
  }

  retry(round: number, inputResponses: object = ANSWERS): void {
    const request = clientFrame({ id: 1, method: 'tools/call', params: { inputResponses } });
    if (!this.call.retry(round, request, this.follower('retry'))) this.did.push('nothing to come back to');
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
    if (question !== undefined) trial.call.questionWithdrawn(question);
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
    if (end !== 'running') t.is(trial.calls.all().length, end === 'done' || end === 'dead' ? 0 : 1);
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
  t.is(trial.calls.outcomes.bytes, OUTCOME.bytes.length + REQUEST_BYTES);
  trial.calls.outcomes.keep({ id: 'other', principal: 'ada', bytes: PARKING_LIMITS.bytes, giveUp: () => {} });
  t.is(trial.call.state, 'dead');
  t.is(trial.calls.all().length, 0);
  t.is(trial.clock.pendingTimers, 0);
  t.is(trial.calls.lossOf('c', 'ada'), 'state_given_up');
  t.is(trial.calls.lossOf('c', 'bob'), 'state_lost');
});

test('so many questions are open at once; the next is refused, and one may be asked again for each that is withdrawn', (t) => {
  const trial = new Trial();
  for (let n = 0; n < MAX_ASKED_AT_ONCE; n++) trial.ask();
  t.deepEqual(trial.did, []);
  trial.ask();
  t.deepEqual(trial.did, [`refuses ${MAX_ASKED_AT_ONCE + 1}`]);
  trial.call.questionWithdrawn(trial.questions[0] as InputQuestion);
  trial.reset().ask();
  t.deepEqual(trial.did, []);
});

/** Waiting calls may hold so many bytes, all of them of one caller. */
function limitsOf(bytes: number): ParkingLimits {
  return { ...PARKING_LIMITS, bytes, bytesPerPrincipal: bytes };
}

test('what a waiting call holds is its request and what is asked', (t) => {
  const askTwice = (capacity: number): readonly string[] => {
    const trial = new Trial(limitsOf(capacity));
    trial.ask();
    trial.ask();
    return trial.did;
  };
  t.deepEqual(askTwice(REQUEST_BYTES + 2 * QUESTION_BYTES), []);
  t.deepEqual(askTwice(REQUEST_BYTES + 2 * QUESTION_BYTES - 1), ['refuses 2']);
  t.deepEqual(askTwice(REQUEST_BYTES + QUESTION_BYTES - 1), ['refuses 1', 'refuses 2']);
});

const freesCapacity: Record<string, (trial: Trial) => void> = {
  'a question that is answered': (trial) => {
    trial.clock.advance(COALESCING_MS);
    trial.retry(1);
  },
  'a question that is withdrawn': (trial) => trial.call.questionWithdrawn(trial.questions[0] as InputQuestion),
};

for (const [what, make] of Object.entries(freesCapacity)) {
  test(`${what} allows the next`, (t) => {
    const trial = new Trial(limitsOf(REQUEST_BYTES + QUESTION_BYTES));
    trial.ask();
    make(trial);
    trial.reset().ask();
    t.deepEqual(trial.did, []);
  });
}

const ends: Record<string, (trial: Trial) => void> = {
  'is given up': (trial) => trial.clock.advance(PARK_MS),
  'is answered': (trial) => trial.call.finished(OUTCOME),
  'is lost': (trial) => trial.call.lost(FAILURE),
};

for (const [way, end] of Object.entries(ends)) {
  test(`a call that ${way} holds nothing among those that wait`, (t) => {
    const capacity = REQUEST_BYTES + QUESTION_BYTES;
    const trial = starts.parked(new Trial(limitsOf(capacity)));
    const next = { id: 'next', principal: 'ada' } as ParkedCall;
    t.false(trial.calls.admit(next, capacity));
    end(trial);
    t.true(trial.calls.admit(next, capacity));
  });
}

test('what is over is not kept, and no timer either', (t) => {
  for (const start of ['parked', 'held', 'dead'] as const) {
    const trial = starts[start](new Trial());
    trial.clock.advance(PARK_MS);
    t.is(trial.calls.all().length, 0, start);
    t.is(trial.calls.outcomes.bytes, 0, start);
    t.is(trial.clock.pendingTimers, 0, start);
  }
});
