import test from 'ava';
import { CallNotices, MAX_KEPT_NOTICES } from '../../../src/eras/modern-to-legacy/call-notices.ts';
import { PARK_MS, RETENTION_MS } from '../../../src/eras/modern-to-legacy/questions/parked-call.ts';
import { ParkedCalls } from '../../../src/eras/modern-to-legacy/questions/parked-calls.ts';
import { collectLog } from '../../process/collected-log.ts';
import { serverFrame } from '../../support/frames.ts';
import { type AskOptions, type Message, ModernBridge, type ModernRequest } from './modern-bridge.ts';

const ASK = { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object' } } };
const ACCEPT = { action: 'accept', content: {} };
const LISTENING = { logLevel: 'info', progressToken: 'a' } as const;

/** A call that has asked its client something and waits for it to come back. */
class Parked {
  readonly bridge: ModernBridge;
  readonly first: ModernRequest;
  readonly #id: unknown;
  #asked = 0;
  #state: unknown;

  constructor(options: AskOptions = LISTENING, bridge = new ModernBridge()) {
    this.bridge = bridge;
    this.first = bridge.call({}, options);
    this.#id = this.#sent();
    this.asks();
    this.#state = this.first.answer().result.requestState;
    this.first.leaves();
  }

  /** The id of the call at the server, which agrees to any level. */
  #sent(): unknown {
    for (;;) {
      const [message] = this.bridge.heard();
      if (message?.method === 'tools/call') return message.id;
      this.bridge.says({ id: message?.id, result: {} });
    }
  }

  asks(): void {
    this.#asked += 1;
    this.bridge.says({ id: `q${this.#asked}`, ...ASK });
    this.bridge.collect();
  }

  progress(progress: number): void {
    this.bridge.says({ method: 'notifications/progress', params: { progressToken: this.#id, progress } });
  }

  log(level: string, data: unknown = level): void {
    this.bridge.says({ method: 'notifications/message', params: { level, data } });
  }

  vendor(n: number): void {
    this.bridge.says({ method: 'notifications/x.vendor/said', params: { n } });
  }

  ends(): void {
    this.bridge.says({ id: this.#id, result: { content: [] } }, 0);
  }

  retry(options: AskOptions = LISTENING): ModernRequest {
    const keys = Array.from({ length: this.#asked }, (_, index) => `elicitation-${index + 1}`);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, ACCEPT]));
    return this.bridge.call({ requestState: this.#state, inputResponses }, { id: 8, ...options });
  }

  /** What it was told before it was asked something, in short. */
  toldBeforeAsked(request: ModernRequest): readonly unknown[] {
    const messages = request.told();
    this.#state = messages.at(-1)?.result.requestState;
    return messages.map(inShort);
  }
}

function inShort({ params, result, method }: Message): unknown {
  if (result !== undefined) return result.resultType;
  return method === 'notifications/progress' ? params : (params.data ?? params.n);
}

function told(request: ModernRequest): readonly unknown[] {
  return request.told().map(inShort);
}

test('what the server says while nobody is there is told to the retry, in order and before all that follows', (t) => {
  const parked = new Parked();
  parked.progress(1);
  parked.log('info');
  parked.progress(2);
  parked.vendor(1);
  parked.log('error');
  const again = parked.retry({ ...LISTENING, progressToken: 'b' });
  parked.progress(3);
  parked.ends();
  t.deepEqual(told(again), [
    { progressToken: 'b', progress: 1 },
    'info',
    { progressToken: 'b', progress: 2 },
    1,
    'error',
    { progressToken: 'b', progress: 3 },
    'complete',
  ]);
});

test('progress that was kept increases, whatever was said before and meanwhile', (t) => {
  const parked = new Parked();
  for (const progress of [2, 1, 2, 3]) parked.progress(progress);
  const again = parked.retry();
  for (const progress of [3, 4]) parked.progress(progress);
  t.deepEqual(
    again.told().map(({ params }) => params.progress),
    [2, 3, 4],
  );
});

test('what was kept is told once, to the first that comes back', (t) => {
  const parked = new Parked();
  parked.vendor(1);
  t.deepEqual(told(parked.retry()), [1]);
  t.deepEqual(told(parked.retry({ ...LISTENING, id: 9 })), []);
});

test('an outcome that waits for its client comes after what was said before it', (t) => {
  const parked = new Parked();
  parked.progress(1);
  parked.log('info');
  parked.ends();
  t.deepEqual(told(parked.retry()), [{ progressToken: 'a', progress: 1 }, 'info', 'complete']);
  t.deepEqual(told(parked.retry({ ...LISTENING, id: 9 })), ['complete']);
});

test('a retry without all answers is told before it is asked again, the next one what came since', (t) => {
  const parked = new Parked();
  parked.vendor(1);
  parked.asks();
  parked.vendor(2);
  const again = parked.retry();
  t.deepEqual(parked.toldBeforeAsked(again), [1, 2, 'input_required']);
  parked.vendor(3);
  t.deepEqual(told(parked.retry()), [3]);
});

test('a retry of an older round is no follower, and is told nothing of it', (t) => {
  const parked = new Parked();
  const again = parked.retry();
  parked.asks();
  again.told();
  parked.vendor(1);
  t.deepEqual(told(parked.retry({ ...LISTENING, id: 9 })), ['input_required']);
});

test('logs are kept by the level of the request that was last there, and told by that of the retry', (t) => {
  const rows: readonly (readonly [AskOptions, AskOptions, readonly string[]])[] = [
    [{ logLevel: 'info' }, { logLevel: 'info' }, ['info', 'error']],
    [{ logLevel: 'info' }, { logLevel: 'error' }, ['error']],
    [{ logLevel: 'error' }, { logLevel: 'debug' }, ['error']],
    [{ logLevel: 'info' }, {}, []],
    [{}, { logLevel: 'debug' }, []],
  ];
  for (const [before, after, expected] of rows) {
    const parked = new Parked(before);
    for (const level of ['debug', 'info', 'error']) parked.log(level);
    t.deepEqual(told(parked.retry(after)), expected, `${before.logLevel}, then ${after.logLevel}`);
  }
});

test('the request that was last there is the latest, not the most curious', (t) => {
  const parked = new Parked();
  const again = parked.retry({});
  parked.asks();
  parked.toldBeforeAsked(again);
  parked.log('error');
  t.deepEqual(told(parked.retry()), []);
});

test('a retry that does not ask for progress is told none', (t) => {
  const parked = new Parked();
  parked.progress(1);
  parked.vendor(1);
  t.deepEqual(told(parked.retry({})), [1]);
});

test('what may be about either of two calls with levels is kept for neither', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  const parked = new Parked(LISTENING, bridge);
  const other = bridge.call({}, { id: 2, logLevel: 'info' });
  parked.log('error');
  t.deepEqual(told(other), []);
  t.deepEqual(told(parked.retry()), []);
});

test('what is about another call is not kept', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  const parked = new Parked({}, bridge);
  const other = bridge.call({}, LISTENING);
  bridge.says({ id: bridge.heardOnly('logging/setLevel').id, result: {} });
  const { id } = bridge.heardOnly('tools/call');
  parked.log('info');
  bridge.says({ method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
  t.deepEqual(told(other), ['info', { progressToken: 'a', progress: 1 }]);
  t.deepEqual(told(parked.retry()), []);
});

test('changes are for those who listen to them', (t) => {
  const parked = new Parked();
  parked.bridge.says({ method: 'notifications/tools/list_changed' });
  t.deepEqual(told(parked.retry()), []);
});

test('what the server says after its answer is about nothing anymore', (t) => {
  const parked = new Parked();
  parked.ends();
  parked.log('error');
  parked.progress(1);
  t.deepEqual(told(parked.retry()), ['complete']);
});

test('the flood of one call takes nothing from what it will be asked, nor from its end', (t) => {
  const parked = new Parked();
  parked.progress(1);
  for (let n = 0; n < 10 * MAX_KEPT_NOTICES; n++) parked.log('info', n);
  parked.ends();
  const messages = told(parked.retry());
  t.is(messages.length, MAX_KEPT_NOTICES + 1);
  t.deepEqual(messages[0], { progressToken: 'a', progress: 1 });
  t.deepEqual(messages.slice(-2), [10 * MAX_KEPT_NOTICES - 1, 'complete']);
});

test('how much was lost at the limit is logged once', (t) => {
  const { log, entries } = collectLog();
  const notices = new CallNotices({
    noticed: { followers: [], isParked: true },
    openBytes: () => new ParkedCalls().openBytes('ada'),
    logLevel: undefined,
    log,
  });
  const follower = { logLevel: 'info', progressToken: undefined, declaresTasks: false, notify: () => {} } as const;
  const joins = (): void => notices.followed({ ...follower, settle: () => {}, serverDrained: () => {} });
  joins();
  const said = serverFrame({ method: 'notifications/message', params: { level: 'info', data: 1 } });
  for (let n = 0; n < MAX_KEPT_NOTICES + 3; n++) notices.take(said, undefined);
  joins();
  joins();
  t.deepEqual(
    entries.map(({ level, dropped }) => [level, dropped]),
    [[40, 3]],
  );
});

/** Capacity for one waiting call and half of what the first one is told. */
const CAPACITY = 4096;
const PAD = 'x'.repeat(3000);

const ends: Record<string, (parked: Parked) => void> = {
  'is told': (parked) => void parked.retry(),
  'is not asked for in time': ({ bridge }) => bridge.clock.advance(PARK_MS),
  'has ended, and was not asked for in time': (parked) => {
    parked.ends();
    parked.bridge.clock.advance(RETENTION_MS);
  },
  'is lost with its server': ({ bridge }) => {
    bridge.exits(0);
    // Until there is another one.
    bridge.clock.advance(5000);
  },
};

for (const [way, end] of Object.entries(ends)) {
  test(`what was kept for a call counts with what calls hold, until it ${way}`, (t) => {
    const parked = new Parked(
      LISTENING,
      new ModernBridge({ parkingLimits: { bytes: CAPACITY, bytesPerPrincipal: CAPACITY, perPrincipal: 9, total: 9 } }),
    );
    const { bridge } = parked;
    parked.log('info', PAD);
    const isAsked = (): boolean => {
      // Under another name, so that its session is one of its own.
      const clientInfo = { name: `c${bridge.dialer.dialed.length}`, version: '1' };
      const call = bridge.call({}, { id: 99, clientInfo });
      bridge.says({ id: 'other', ...ASK, params: { ...ASK.params, message: PAD.slice(0, 800) } });
      bridge.collect();
      const [message] = call.told();
      call.leaves();
      return message !== undefined;
    };
    t.false(isAsked());
    end(parked);
    t.true(isAsked());
  });
}
