import type { Deps } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import { TASK_GIVEN_UP, UNKNOWN_TASK } from '../../mcp/vocabulary/task-extension.ts';
import { ParkedBytes } from '../parked-bytes.ts';
import { HostedTask, type HostedTaskOptions } from './hosted-task.ts';
import { KeptOutcomes } from './kept-outcomes.ts';
import { MAX_CALL_MS } from './parked-call.ts';
import { PARKING_LIMITS, type ParkingLimits } from './parked-calls.ts';

/** As long as any other call may take; a server may want to keep its own tasks for less. */
export const MAX_TASK_MS = MAX_CALL_MS;

export type NewTask = Omit<HostedTaskOptions, 'id' | 'ttlMs' | 'clock' | 'log' | 'held' | 'outcomes' | 'onGone'>;

/** The tasks modern clients know of, by the ids they know them by. */
export class HostedTasks {
  readonly #deps: Deps;
  readonly #limits: ParkingLimits;
  readonly #bytes: ParkedBytes;
  readonly #outcomes: KeptOutcomes;
  readonly #byId = new Map<string, HostedTask>();

  constructor(
    deps: Deps,
    limits: ParkingLimits = PARKING_LIMITS,
    bytes = new ParkedBytes(limits),
    outcomes = new KeptOutcomes(limits.bytes),
  ) {
    this.#deps = deps;
    this.#limits = limits;
    this.#bytes = bytes;
    this.#outcomes = outcomes;
  }

  /** Undefined: there are too many, or they hold too much, and the call must be waited for. */
  add(task: NewTask): HostedTask | undefined {
    const own = [...this.#byId.values()].filter(({ principal }) => principal === task.principal);
    if (own.length >= this.#limits.perPrincipal || this.#byId.size >= this.#limits.total) return undefined;
    const held = this.#bytes.open(task.principal);
    if (!held.set(task.answered.request.bytes.length)) return undefined;
    const { ttl } = task.task;
    const ttlMs = typeof ttl === 'number' ? Math.min(Math.max(0, ttl), MAX_TASK_MS) : MAX_TASK_MS;
    const { clock, log, randomId } = this.#deps;
    const onGone = (gone: HostedTask): void => void this.#byId.delete(gone.id);
    const hosted = new HostedTask({
      ...task,
      id: randomId(),
      ttlMs,
      clock,
      log,
      held,
      outcomes: this.#outcomes,
      onGone,
    });
    this.#byId.set(hosted.id, hosted);
    hosted.start();
    return hosted;
  }

  /** A task of somebody else is none. */
  find(id: string | undefined, principal: string): HostedTask | undefined {
    const task = id === undefined ? undefined : this.#byId.get(id);
    return task?.principal === principal ? task : undefined;
  }

  /** Why there is none by this id. */
  lossOf(id: string | undefined, principal: string): RpcError {
    return id !== undefined && this.#outcomes.wasGivenUp(id, principal) ? TASK_GIVEN_UP : UNKNOWN_TASK;
  }

  close(reason: BridgeError): void {
    for (const task of [...this.#byId.values()]) task.close(reason);
  }
}
