/**
 * Hears of every function of src/ that is entered and of every object of a class of src/ that is made, and keeps them
 * while a call is recorded. Closures and object literals are not counted: only instances of the project's classes.
 */
import type { Clock } from '../../src/deps.ts';

/** A step of a call, in the order in which it happened. */
export interface Step {
  readonly kind: 'function' | 'object';
  /** Below src/. */
  readonly file: string;
  readonly line: number;
  /** The function's name, or that of the object's class. */
  readonly name: string;
  /** How many functions of src/ wait for this one; 0 where Node itself has called. */
  readonly depth: number;
}

/** A function that has been entered and not left. */
interface Activation {
  readonly file: string;
  readonly line: number;
  readonly name: string;
  /** A timer that an earlier call has set runs it. */
  readonly isMuted: boolean;
  /** What runs again when this one is left or waits; an async function is called on by somebody else after each await. */
  caller: Activation | undefined;
  depth: number;
  /** The recording that has this function as a step. */
  recording: Step[] | undefined;
}

let recording: Step[] | undefined;
let current: Activation | undefined;

/** Grows with every function that is entered, recorded or not. */
let entered = 0;

/** Longer than a server takes for what nobody waits for, such as its answer to a subscription. */
const QUIET_MS = 50;

/**
 * Records what src/ does from now until `call` has resolved and nothing happens anymore: the end of a response comes
 * after the answer, and so does what is let go with it. What earlier calls have started is waited for first.
 */
export async function record(call: () => Promise<void>): Promise<readonly Step[]> {
  await becomeQuiet();
  const steps: Step[] = [];
  recording = steps;
  try {
    await call();
    await becomeQuiet();
  } finally {
    recording = undefined;
  }
  return steps;
}

async function becomeQuiet(): Promise<void> {
  for (let known = -1; known < entered; ) {
    known = entered;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

/** Leaves timers out of a recording that were set before it began: those are not of the call. */
export function withoutOlderTimers(clock: Clock): Clock {
  const ofItsRecording = (run: () => void) => {
    const setDuring = recording;
    return () => (recording === setDuring ? run() : runMuted(run));
  };
  return {
    now: () => clock.now(),
    after: (delayMs, run) => clock.after(delayMs, ofItsRecording(run)),
    every: (periodMs, run) => clock.every(periodMs, ofItsRecording(run)),
  };
}

function runMuted(run: () => void): void {
  const timer = { file: '', line: 0, name: '', isMuted: true, caller: current, depth: -1, recording: undefined };
  current = timer;
  try {
    run();
  } finally {
    leave(timer);
  }
}

/** The following are called by the code that instrument.js has changed. */
export function enter(file: string, line: number, name: string): Activation {
  entered += 1;
  const caller = current;
  current = { file, line, name, isMuted: caller?.isMuted ?? false, caller, depth: 0, recording: undefined };
  takeStep(current);
  return current;
}

export function leave(activation: Activation): void {
  // Another one runs already where a rejection ends an async function that has waited.
  if (current === activation) current = activation.caller;
}

/** Before an await: the caller of the function runs on. */
export function suspend<Value>(activation: Activation, value: Value): Value {
  leave(activation);
  return value;
}

/** After an await, and wherever an error is caught. A function that was entered before the recording is a step now. */
export function resume<Value>(activation: Activation, value: Value): Value {
  if (current === activation) return value;
  activation.caller = current;
  current = activation;
  takeStep(activation);
  return value;
}

function takeStep(activation: Activation): void {
  if (recording === undefined || activation.isMuted || activation.recording === recording) return;
  activation.recording = recording;
  activation.depth = (activation.caller?.depth ?? -1) + 1;
  const { file, line, name, depth } = activation;
  recording.push({ kind: 'function', file, line, name, depth });
}

type Class = abstract new (...args: never[]) => object;

const classes = new Map<unknown, Pick<Step, 'file' | 'line' | 'name'>>();
/** A class and the one that it extends both tell of an object. */
const known = new WeakSet<object>();

export function defineClass(defined: Class, file: string, line: number, name: string): void {
  classes.set(defined, { file, line, name });
}

export function made(object: object): void {
  if (known.has(object)) return;
  known.add(object);
  const defined = classes.get(object.constructor);
  if (recording === undefined || current?.isMuted === true || defined === undefined) return;
  recording.push({ kind: 'object', ...defined, depth: (current?.depth ?? -1) + 1 });
}
