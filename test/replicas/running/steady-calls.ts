import type { MatrixClient } from '../../matrix/matrix-client.ts';

/** A kind of call that a steady client makes again and again. Words name each call, so that whoever runs it can tell. */
export interface SteadyCall {
  /** Whether the server records it. It records calls of tools, except very large ones. */
  readonly isRecorded: boolean;
  /** Rejects when there is no answer, or a wrong one. */
  make(client: MatrixClient, words: string): Promise<void>;
}

function expect(text: string, isRight: boolean): void {
  if (!isRight) throw new Error(`answered with ${text}`);
}

const echo: SteadyCall = {
  isRecorded: true,
  async make(client, words) {
    const { text } = await client.callTool('echo', { value: words });
    expect(text, text === words);
  },
};

/** Messages on the way come in their order, none of them twice, before the answer. */
const progress: SteadyCall = {
  isRecorded: true,
  async make(client, words) {
    const heard: (string | undefined)[] = [];
    const args = { to: 3, label: words, value: words };
    const { text } = await client.callTool('count', args, { onProgress: (message) => heard.push(message) });
    expect(text, text === `${words} counted to 3`);
    const steps = [1, 2, 3].map((step) => `${words} ${step}`);
    const inOrder = steps.filter((step) => heard.includes(step));
    expect(`the progress ${heard.join(', ')}`, JSON.stringify(heard) === JSON.stringify(inOrder));
  },
};

/** A server of the legacy era gives up a question after this, and its client a little later: an answer may be lost. */
const ANSWER_TIMEOUT_MS = 10_000;
/** How the SDK complains. */
const UNSENT_ANSWER = 'Failed to send response';
const QUESTION = 'elicitation/create';
const SCHEMA = { type: 'object', properties: { said: { type: 'string' } } };

/** The server asks within the call, and is answered by the client that made it. */
const question: SteadyCall = {
  isRecorded: true,
  async make(client, words) {
    const params = { message: words, requestedSchema: SCHEMA };
    const args = { method: QUESTION, params, value: words, timeoutMs: ANSWER_TIMEOUT_MS };
    const known = client.faults.length;
    const { text } = await client.callTool('ask', args, { signal: AbortSignal.timeout(2 * ANSWER_TIMEOUT_MS) });
    const wasRefused = client.faults.slice(known).some(({ message }) => message.startsWith(UNSENT_ANSWER));
    // The client does not repeat an answer whose replica has died, but it is told.
    if (text.includes('"error"') && wasRefused)
      throw new Error('the server got no answer: its client could not send it');
    expect(text, text.includes(`heard ${words}`));
  },
};

/** Has a client answer the questions of `question`. */
export function answerQuestions(client: MatrixClient): void {
  client.answer(QUESTION, ({ message }) => ({ action: 'accept', content: { said: `heard ${String(message)}` } }));
}

function echoing(bytes: number): SteadyCall {
  return {
    isRecorded: false,
    async make(client, words) {
      const value = `${words} ${'x'.repeat(bytes)}`;
      const { text } = await client.callTool('echo', { value });
      expect(text.slice(0, 100), text === value);
    },
  };
}

/** More than passes between replicas unread. A request of this size fails when its session moves while it is sent. */
const large = echoing(192 * 1024);
/** The largest of which a replica keeps a copy, so that it can go to where its session has moved. */
const kept = echoing(32 * 1024);

const list: SteadyCall = {
  isRecorded: false,
  async make(client) {
    const { items } = await client.list('tools');
    expect(JSON.stringify(items), items.length > 0);
  },
};

export const ECHO: readonly SteadyCall[] = [echo];
/** For a server without sessions: it cannot ask, since nothing connects an answer with its question. */
export const CALLS_WITHOUT_QUESTIONS: readonly SteadyCall[] = [echo, progress, list, large];
export const ESSENTIAL_CALLS: readonly SteadyCall[] = [...CALLS_WITHOUT_QUESTIONS, question];
/** None of these may fail where replicas hand over what they have. */
export const LASTING_CALLS: readonly SteadyCall[] = [echo, progress, list, kept, question];
