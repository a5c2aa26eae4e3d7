import { setTimeout as delay } from 'node:timers/promises';
import { bigText, SUM_META } from './content.js';

/** Long enough for the answer of the call to have left, short enough not to matter. */
const AFTER_ANSWER_MS = 10;

/**
 * What a tool may use besides its arguments.
 * @typedef {object} Call
 * @property {string | number | undefined} progressToken
 * @property {object | undefined} meta `_meta` of the call
 * @property {AbortSignal} signal
 * @property {() => Promise<void>} pause before an answer that must not overtake what was sent before
 * @property {(method: string, params?: object) => Promise<void>} notify as part of the call
 * @property {(questions: readonly Question[], timeoutMs?: number) => Promise<unknown[]>} ask all of them at once, as
 *   part of the call. In the modern era the call ends here to be made again, so there is nothing before it that may
 *   not happen twice.
 * @property {() => readonly string[]} loggedLevels those that reach the client
 * @property {Host} session
 *
 * @typedef {{readonly method: string, readonly params?: object}} Question
 *
 * What lasts longer than a call: a session of the legacy era, or the whole server.
 * @typedef {object} Host
 * @property {(kind: import('./record.js').Kind, value?: unknown) => void} note
 * @property {(method: string, params?: object) => Promise<void>} notify between calls; legacy only
 * @property {(method: string, params?: object) => Promise<unknown>} ask between calls; legacy only
 * @property {(uri: string) => Promise<void>} touched
 * @property {(list: string, name: string) => Promise<void>} grow
 *
 * @typedef {{(args: Record<string, any>, call: Call): unknown, definition?: object}} Tool
 */

const text = (/** @type {unknown} */ value) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
});

/** Runs when the call is over; without sessions nobody is there anymore by then. @param {() => Promise<unknown>} run */
const afterAnswer = (run) =>
  void delay(AFTER_ANSWER_MS)
    .then(run)
    .catch(() => undefined);

/** @type {Tool} */
function sum({ a, b }) {
  return { ...text(`${a + b}`), structuredContent: { sum: a + b, exact: Number.isInteger(a + b) } };
}
sum.definition = {
  title: 'Adds two numbers',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  outputSchema: {
    type: 'object',
    properties: { sum: { type: 'number' }, exact: { type: 'boolean' } },
    required: ['sum', 'exact'],
  },
  annotations: { readOnlyHint: true },
  _meta: SUM_META,
};

/** Calls of `hold`. @type {Map<string, (value?: unknown) => void>} */
const held = new Map();

/** Tools by name. @type {Readonly<Record<string, Tool>>} */
export const TOOLS = {
  echo: ({ value }, { meta }) => ({ ...text(value), ...(meta && { _meta: { 'example.com/heard': meta } }) }),

  sum,

  big: ({ bytes }) => text(bigText(bytes)),

  /** Answers after a while. */
  later: async ({ value, ms }) => {
    await delay(ms);
    return text(value);
  },

  /** Says that it has begun, and answers when it is released, through whatever session. */
  hold: async ({ value }, { progressToken, notify }) => {
    const released = new Promise((resolve) => held.set(value, resolve));
    await notify('notifications/progress', { progressToken, progress: 0 });
    await released;
    return text(value);
  },

  release: ({ value }) => {
    held.get(value)?.();
    return text(held.delete(value));
  },

  /** Progress 1 … `to`, then the answer. */
  count: async ({ to, label }, { progressToken, notify, pause }) => {
    for (let progress = 1; progress <= to; progress += 1) {
      const about = { progressToken, progress, total: to, message: `${label} ${progress}` };
      await notify('notifications/progress', { ...about, _meta: { 'example.com/step': progress } });
    }
    await pause();
    return text(`${label} counted to ${to}`);
  },

  /** One log message of each level, as far as the level that was set lets them pass. */
  log: async ({ marker }, { loggedLevels, notify, pause }) => {
    for (const level of loggedLevels()) {
      await notify('notifications/message', { level, logger: 'matrix', data: { marker, level } });
    }
    await pause();
    return text('logged');
  },

  /** Never answers; the record says when it was told to stop. */
  wait: ({ label }, { signal, session }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        session.note('aborted', { label, reason: signal.reason });
        resolve(text('told to stop'));
      });
    }),

  /** Fails as the arguments say. */
  fail: ({ code, message, data }) => {
    throw Object.assign(new Error(message), { code, data });
  },

  /** A failure the model is told about, not the client. */
  refuse: ({ why }) => ({ ...text(why), isError: true }),

  /** Asks the client something during the call; the answer is what the client said, or the error. */
  ask: async ({ method, params, timeoutMs }, { ask }) => {
    const [answer] = await ask([{ method, params }], timeoutMs);
    return text(answer);
  },

  /** Each round asks several things at once, and the next one waits for all of them; the answer is all answers. */
  interview: async ({ rounds }, { ask }) => {
    const answers = [];
    for (const round of rounds) answers.push(await ask(round));
    return text(answers);
  },

  /** The same between calls; the answer is in the record. */
  askLater: ({ method, params, marker }, { session }) => {
    afterAnswer(async () => {
      session.note('answered', { marker, answer: await session.ask(method, params) });
    });
    return text('will ask');
  },

  /** Sends a notification during the call. */
  notify: async ({ method, params }, { notify, pause }) => {
    await notify(method, params);
    await pause();
    return text('notified');
  },

  /** The same between calls. */
  notifyLater: ({ method, params }, { session }) => {
    afterAnswer(() => session.notify(method, params));
    return text('will notify');
  },

  /** The resource has changed: whoever subscribed to it, in whatever session, is told. */
  touch: ({ uri }, { session }) => {
    afterAnswer(() => session.touched(uri));
    return text('touched');
  },

  /** One more item in a list of this session. */
  grow: ({ list, name }, { session }) => {
    afterAnswer(() => session.grow(list, name));
    return text('grown');
  },

  exit: ({ code }) => process.exit(code),
};
