import { waitFor } from '../../support/wait-for.ts';
import { seenByServer } from '../cell.ts';
import { fromServer, type MatrixClient, type TracedMessage } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import type { RecordEntry } from '../servers.ts';
import { methodOf } from './calls.ts';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const PROGRESS = 'notifications/progress';
const MESSAGE = 'notifications/message';

const stepsOf = (label: string, to: number) => Array.from({ length: to }, (_, index) => `${label} ${index + 1}`);

/** The client's own call with such an argument. */
function callWith(client: MatrixClient, name: string, value: unknown): TracedMessage | undefined {
  return client.trace.find(({ from, message }) => {
    const args = message.params?.arguments as Readonly<Record<string, unknown>> | undefined;
    return from === 'client' && message.method === 'tools/call' && args?.[name] === value;
  })?.message;
}

const tokenOf = (call: TracedMessage | undefined): unknown =>
  (call?.params?._meta as { readonly progressToken?: unknown } | undefined)?.progressToken;

const progressOf = (client: MatrixClient, token: unknown): readonly TracedMessage[] =>
  fromServer(client, PROGRESS).filter(({ params }) => params?.progressToken === token);

const levelsOf = (client: MatrixClient, marker: string): readonly unknown[] =>
  fromServer(client, MESSAGE)
    .filter(({ params }) => (params?.data as { readonly marker?: unknown } | undefined)?.marker === marker)
    .map(({ params }) => params?.level);

export const DURING_CALLS: readonly Scenario[] = [
  {
    title: 'progress arrives complete and in order at the call it belongs to',
    needs: ['callMessages'],
    async run(t, cell) {
      const client = await cell.main();
      const count = (label: string, to: number) => client.callTool('count', { label, to }, { onProgress: () => {} });
      const [few, many] = await Promise.all([count('few', 7), count('many', 40)]);
      t.is(few.text, 'few counted to 7');
      t.is(many.text, 'many counted to 40');
      // Read off the wire: the SDK drops progress that comes in one chunk with the answer after it.
      const stepsFor = (label: string) => progressOf(client, tokenOf(callWith(client, 'label', label)));
      const heard = (label: string) => stepsFor(label).map(({ params }) => params?.message);
      // On a stream of its own, progress may come after the answer.
      await waitFor(() => heard('few').length >= 7 && heard('many').length >= 40, { message: 'all progress' });
      t.deepEqual([heard('few'), heard('many')], [stepsOf('few', 7), stepsOf('many', 40)]);
      const steps = stepsFor('many');
      t.deepEqual(
        steps.map(({ params }) => params?._meta),
        steps.map((_, index) => ({ 'example.com/step': index + 1 })),
      );
    },
  },
  {
    title: 'progress and log messages of a call come before its answer',
    needs: ['callMessages', 'logging', 'oneOrder'],
    async run(t, cell) {
      const client = await cell.main();
      await client.setLevel('debug');
      await client.callTool('count', { label: 'ordered', to: 25 }, { onProgress: () => {} });
      const call = callWith(client, 'label', 'ordered');
      const order = fromServer(client).filter(({ id, params }) => {
        return id === call?.id || (params?.progressToken !== undefined && params.progressToken === tokenOf(call));
      });
      t.deepEqual(
        order.map(({ id, params }) => (id === undefined ? params?.progress : 'answer')),
        [...Array.from({ length: 25 }, (_, index) => index + 1), 'answer'],
      );

      await client.callTool('log', { marker: 'ordered' });
      const logged = callWith(client, 'marker', 'ordered');
      const isAnswer = ({ id, method }: TracedMessage) => id === logged?.id && method === undefined;
      const messages = fromServer(client);
      const last = messages.findLastIndex(({ params }) => methodAndMarker(params) === 'ordered');
      t.true(last !== -1 && last < messages.findIndex(isAnswer));
    },
  },
  {
    title: 'log messages of a call arrive, all of them and in order',
    needs: ['logging'],
    async run(t, cell) {
      const client = await cell.main();
      await client.setLevel('debug');
      await client.callTool('log', { marker: 'all' });
      await waitFor(() => levelsOf(client, 'all').length >= LEVELS.length, { message: 'the log messages' });
      t.deepEqual(levelsOf(client, 'all'), LEVELS);
    },
  },
  {
    title: 'only log messages from the level that was set on arrive',
    needs: ['logging'],
    async run(t, cell) {
      const client = await cell.main();
      await client.setLevel('error');
      await client.callTool('log', { marker: 'few' });
      await client.setLevel('debug');
      await client.callTool('log', { marker: 'again all' });
      await waitFor(() => levelsOf(client, 'again all').length >= LEVELS.length, { message: 'the log messages' });
      t.deepEqual(levelsOf(client, 'few'), LEVELS.slice(LEVELS.indexOf('error')));
    },
  },
  {
    title: 'where one side is modern, a client that sets no level hears no log messages',
    needs: ['logging'],
    async run(t, cell) {
      // Another than the one that has set levels before.
      const client = await cell.connected('incapable', { capabilities: {} });
      await client.callTool('log', { marker: 'unheard' });
      // What a legacy server tells a legacy client that has not set a level is its own affair.
      const isSilent = cell.clientEra === 'modern' || cell.serverEra === 'modern';
      if (isSilent) t.deepEqual(levelsOf(client, 'unheard'), []);
      else t.pass();
    },
  },
  {
    title: 'notifications of extensions reach the client, with their _meta',
    needs: ['ownNotificationsDown'],
    async run(t, cell) {
      const client = await cell.main();
      const params = { deep: [1, { two: null }], _meta: { 'example.com/n': 'ü' } };
      for (const method of ['notifications/custom/during', 'notifications/skills/list_changed']) {
        await client.callTool('notify', { method, params });
        await waitFor(() => fromServer(client, method).length > 0, { message: method });
        t.deepEqual(fromServer(client, method)[0]?.params, params);
      }
    },
  },
  {
    title: 'a cancellation reaches the server, under the name the server knows the call by',
    needs: ['calls'],
    async run(t, cell) {
      const client = await cell.main();
      await canceledCall(client, 'named');
      const call = await seenByServer(client, 'the call', ({ value }) => labelOf(value) === 'named');
      const { id } = call.value as { readonly id: unknown };
      await seenByServer(client, 'the cancellation', ({ session, kind, value }) =>
        kind === 'message'
          ? methodOf(value) === 'notifications/cancelled' &&
            requestIdOf(value) === id &&
            // Without sessions each POST has a name of its own, and ids are the client's.
            (session === call.session || session.startsWith('post '))
          : // A modern client over HTTP has nothing to say, but closes its stream.
            kind === 'aborted' && abortedOf(value)?.label === 'named',
      );
      t.is((await client.callTool('echo', { value: 'still there' })).text, 'still there');
    },
  },
  {
    title: 'the reason of a cancellation reaches the server where both ends have a message for it',
    needs: ['cancelReason', 'cancel'],
    async run(t, cell) {
      const reason = 'changed my mind: reasoned';
      t.is((await endOfCanceled(await cell.main(), 'reasoned')) === reason, cell.hasMessageForCancellation);
    },
  },
  {
    title: 'the server is told of a cancellation in the name of the bridge',
    needs: ['cancel'],
    without: 'cancelReason',
    async run(t, cell) {
      t.is(await endOfCanceled(await cell.main(), 'bridged'), 'the client left');
    },
  },
  {
    title: 'a canceled call is stopped, and nothing answers it',
    needs: ['cancel'],
    async run(t, cell) {
      const client = await cell.main();
      await canceledCall(client, 'stopped');
      await seenByServer(client, 'the end of the call', isEndOf('stopped'));
      await client.callTool('echo', { value: 'a later answer' });
      const call = callWith(client, 'label', 'stopped');
      t.false(fromServer(client).some(({ id, method }) => id === call?.id && method === undefined));
    },
  },
  {
    title: 'a call goes on without messages that have no way to the client',
    needs: ['calls'],
    without: 'callMessages',
    async run(t, cell) {
      const client = await cell.main();
      const heard: unknown[] = [];
      const { text } = await client.callTool(
        'count',
        { label: 'unheard', to: 3 },
        { onProgress: (message) => heard.push(message) },
      );
      t.is(text, 'unheard counted to 3');
      t.deepEqual(heard, []);
    },
  },
];

const methodAndMarker = (params: TracedMessage['params']): unknown =>
  (params?.data as { readonly marker?: unknown } | undefined)?.marker;

const requestIdOf = (message: unknown): unknown =>
  (message as { readonly params?: { readonly requestId?: unknown } } | undefined)?.params?.requestId;

const labelOf = (message: unknown): unknown =>
  (message as { readonly params?: { readonly arguments?: { readonly label?: unknown } } } | undefined)?.params
    ?.arguments?.label;

interface Aborted {
  readonly label?: unknown;
  readonly reason?: unknown;
}

const abortedOf = (value: unknown): Aborted | undefined => value as Aborted | undefined;

const isEndOf =
  (label: string) =>
  ({ kind, value }: RecordEntry): boolean =>
    kind === 'aborted' && abortedOf(value)?.label === label;

/** Resolves with the reason the server was given. */
async function endOfCanceled(client: MatrixClient, label: string): Promise<unknown> {
  await canceledCall(client, label);
  return abortedOf((await seenByServer(client, 'the end of the call', isEndOf(label))).value)?.reason;
}

/** Starts a call that is never answered, and withdraws it when the server has it. */
async function canceledCall(client: MatrixClient, label: string): Promise<void> {
  const withdrawal = new AbortController();
  const call = client.callTool('wait', { label }, { signal: withdrawal.signal }).then(
    () => {
      throw new Error('the call was answered');
    },
    () => undefined,
  );
  await seenByServer(client, 'the call', ({ value }) => labelOf(value) === label);
  withdrawal.abort(`changed my mind: ${label}`);
  await call;
}
