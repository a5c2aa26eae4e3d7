import { createHash } from 'node:crypto';
import { TASK_CHANGED } from '../../mcp/vocabulary/task-extension.ts';
import { withParams } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { joinMembers, notificationFrame } from '../../wire/write-message.ts';
import type { HostedTask } from './hosted-task.ts';

/**
 * One task for one who listens: what is known of it now, and again whenever that is something else. [SEP-2663] each
 * notification says all that `tasks/get` would.
 */
export class TaskWatch {
  readonly #task: HostedTask;
  readonly #tell: (notification: Frame) => void;
  readonly stop: () => void;
  /** Digest of it: what a task asks may be large, and many may listen. */
  #told: string | undefined;

  constructor(task: HostedTask, tell: (notification: Frame) => void) {
    this.#task = task;
    this.#tell = tell;
    this.#look();
    this.stop = task.watch(() => this.#look());
  }

  #look(): void {
    const members = this.#task.members();
    if (members === undefined) return;
    const params = joinMembers(members);
    const digest = createHash('sha256').update(params).digest('base64');
    if (digest === this.#told) return;
    this.#told = digest;
    this.#tell(withParams(notificationFrame(TASK_CHANGED), params));
  }
}
