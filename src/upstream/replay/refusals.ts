/** The errors for requests that a recording has no answer to. They say what was recorded instead. */
import { BridgeError } from '../../errors.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { HIDDEN } from '../../recording/recorded-message.ts';
import { editDistance } from '../../suggest.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallFinder } from './find-call.ts';
import { compareParameters, type Difference, readParameters } from './parameters.ts';
import type { RecordedCall } from './recorded-call.ts';

/** Limit of recorded requests that an unknown one is compared with. */
const MAX_COMPARED = 200;
/** Limit of methods that an error lists. */
const MAX_LISTED = 20;
/** Longer names of methods are compared with no others, since the cost is the product of the lengths. */
const MAX_NAME_LENGTH = 100;
/** Longest value that an error shows. */
const MAX_SHOWN_LENGTH = 60;

/** Returns the error for a request that was not recorded, which names the nearest one that was. */
export function refuseUnknown(request: Frame, era: Era, finder: CallFinder): BridgeError {
  const { method = '' } = request;
  const recorded = [...take(finder.callsOf(method, era), MAX_COMPARED)];
  if (recorded.length === 0) return refuseMethod(method, finder.methodsOf(era));
  const parameters = readParameters(request, era);
  const isCut = recorded.some((call) => call.parameters === 'cut');
  const hint = isCut
    ? ' Of some, only the beginning was recorded; record with a larger --record-max-message to keep them whole.'
    : '';
  const first = parameters && nearest(recorded, (call) => readParameters(call.request, era), parameters);
  const difference = first === undefined ? '' : `: ${describe(first)} in the nearest one`;
  return new BridgeError(
    'ERR_REPLAY_PARAMS',
    `The recording has no ${method} with these parameters. It has ${count(recorded.length, 'other')}${difference}.${hint}`,
  );
}

function refuseMethod(method: string, methods: readonly string[]): BridgeError {
  const near = nearestName(method, methods);
  const nearby = near === undefined ? '' : ` The nearest method is ${near}.`;
  const listed = methods.slice(0, MAX_LISTED).join(', ');
  const all =
    methods.length === 0 ? 'no requests but handshakes' : `${listed}${methods.length > MAX_LISTED ? ', …' : ''}`;
  return new BridgeError('ERR_REPLAY_METHOD', `The recording has no request of this method.${nearby} It has ${all}.`);
}

/** Returns the error for a recorded call that has no whole answer. */
export function refuseAnswer({ method, answer }: RecordedCall): BridgeError {
  return answer.kind === 'cut'
    ? new BridgeError(
        'ERR_REPLAY_ANSWER',
        `Only the beginning of the answer to this ${method} was recorded; record it with a larger --record-max-message to keep it whole.`,
      )
    : new BridgeError(
        'ERR_REPLAY_ANSWER',
        `This ${method} has no answer in the recording: it was canceled, or the recording ends before its answer.`,
      );
}

/** Returns the error for a round that was not recorded: the client of the recording never repeated the request. */
export function refuseRound(method: string): BridgeError {
  return new BridgeError(
    'ERR_REPLAY_ANSWER',
    `The recording ends before the answer to this ${method}: its client did not repeat it with the input that the server required.`,
  );
}

function nearest<T>(
  recorded: readonly RecordedCall[],
  read: (call: RecordedCall) => T | undefined,
  given: T & Readonly<Record<string, unknown>>,
): Difference | undefined {
  let best: ReturnType<typeof compareParameters> | undefined;
  for (const call of recorded) {
    const parameters = call.parameters === 'cut' ? undefined : read(call);
    if (parameters === undefined) continue;
    const compared = compareParameters(parameters as Readonly<Record<string, unknown>>, given);
    if (best === undefined || compared.weight < best.weight) best = compared;
  }
  return best?.first;
}

/** Shows a recorded value only if it is short and nothing of it is hidden. */
function describe({ path, recorded, kind }: Difference): string {
  const place = path === '' ? 'its parameters' : path.slice(0, MAX_SHOWN_LENGTH);
  if (kind === 'added') return `there is no ${place}`;
  const text = typeof recorded === 'object' && recorded !== null ? undefined : JSON.stringify(recorded);
  const isShown = text !== undefined && text.length <= MAX_SHOWN_LENGTH && !text.includes(HIDDEN);
  return isShown ? `${place} is ${text}` : `${place} is another value`;
}

function nearestName(name: string, names: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const near = names
    .filter((other) => other.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_COMPARED)
    .map((other) => ({ other, distance: editDistance(name, other) }))
    .sort((one, another) => one.distance - another.distance);
  return near[0]?.other;
}

function count(number: number, noun: string): string {
  return `${number >= MAX_COMPARED ? `at least ${number}` : number} ${noun}${number === 1 ? '' : 's'}`;
}

function* take<T>(items: Iterable<T>, limit: number): Iterable<T> {
  let left = limit;
  for (const item of items) {
    if (left === 0) return;
    left -= 1;
    yield item;
  }
}
