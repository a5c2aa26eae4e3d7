/** What is asked of a bridge in one measurement: a tool of the bench server, and what its answer has to be. */
import { filler, fingerprint } from '../server/answers.js';

export type Era = 'legacy' | 'modern';

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly tool: 'echo' | 'produce' | 'absorb' | 'progress' | `${string}__echo`;
  /** Members of the arguments besides the tag, as JSON, each with a comma before it. */
  readonly argumentsTail: string;
  readonly inFlight: number;
  /** What the answer's text has after the tag, as it stands in JSON. */
  readonly expected: Buffer;
  /** Payload bytes of one call, either way; 0 where they are not the point. */
  readonly payloadBytes: number;
  readonly progressEvents: number;
}

const KIB = 1024;
const MIB = KIB * KIB;

const nothing = Buffer.alloc(0);
const small = { tool: 'echo', argumentsTail: '', expected: nothing, payloadBytes: 0, progressEvents: 0 } as const;

function result(bytes: number, inFlight: number): Workload {
  const size = formatSize(bytes);
  return {
    ...small,
    name: `result-${size}`,
    title: `results of ${size}, ${inFlight} in flight`,
    tool: 'produce',
    argumentsTail: `,"bytes":${bytes}`,
    inFlight,
    expected: filler(bytes),
    payloadBytes: bytes,
  };
}

function request(bytes: number, inFlight: number): Workload {
  const size = formatSize(bytes);
  const content = filler(bytes);
  return {
    ...small,
    name: `request-${size}`,
    title: `requests of ${size}, ${inFlight} in flight`,
    tool: 'absorb',
    argumentsTail: `,"text":"${content.toString('latin1')}"`,
    inFlight,
    expected: Buffer.from(` ${fingerprint(JSON.parse(`"${content.toString('latin1')}"`))}`),
    payloadBytes: bytes,
  };
}

export function formatSize(bytes: number): string {
  if (bytes >= MIB) return `${bytes / MIB}MiB`;
  return bytes % KIB === 0 ? `${bytes / KIB}KiB` : `${bytes / 1000}kB`;
}

const EVENTS = 10_000;

export const SMALL_32: Workload = { ...small, name: 'small-32', title: 'small calls, 32 in flight', inFlight: 32 };
export const SMALL_1: Workload = { ...small, name: 'small-1', title: 'small calls, 1 in flight', inFlight: 1 };
/** Calls of a tool as the aggregate names it. The server takes any name that it does not know for that of `echo`. */
export const ofServer = (workload: Workload, server: string): Workload => ({ ...workload, tool: `${server}__echo` });
export const RESULT_1M = result(MIB, 4);
export const RESULT_10M = result(10 * MIB, 1);
export const REQUEST_50K = request(50_000, 8);
export const REQUEST_1M = request(MIB, 4);
export const PROGRESS: Workload = {
  ...small,
  name: 'progress',
  title: `calls with ${EVENTS} progress events, 1 in flight`,
  tool: 'progress',
  argumentsTail: `,"count":${EVENTS}`,
  inFlight: 1,
  progressEvents: EVENTS,
};

/** The sizes between the small call and 1 MiB, for how cost grows with the payload. */
export const RESULT_SIZES = [result(KIB, 8), result(10 * KIB, 8), result(100 * KIB, 8)];
