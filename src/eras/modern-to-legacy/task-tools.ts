/**
 * Tools of 2025-11-25 that run only as tasks. A modern client has no such tasks; for it the bridge starts one and waits
 * for its result. [spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation]
 */
import { asFields, type Fields, readPayload } from '../../mcp/payload.ts';
import type { LegacySession } from '../../relay/legacy-session.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/object-editor.ts';

export const TASK_RESULT = 'tasks/result';

/** Servers with more pages than this are not asked for the rest. */
const MAX_PAGES = 50;

export function offersTasks(capabilities: Fields): boolean {
  const requests = asFields(asFields(capabilities.tasks)?.requests);
  return asFields(requests?.tools)?.call !== undefined;
}

interface KnownTools {
  readonly toolsVersion: number;
  readonly required: ReadonlySet<string>;
}

/** Which tools of which session must be called as tasks. */
export class TaskTools {
  readonly #known = new WeakMap<LegacySession, KnownTools>();

  /** Undefined: nobody has looked since the tools changed. */
  isRequired(session: LegacySession, name: unknown): boolean | undefined {
    const known = this.#known.get(session);
    if (known?.toolsVersion !== session.toolsVersion) return undefined;
    return typeof name === 'string' && known.required.has(name);
  }

  learn(session: LegacySession, toolsVersion: number, required: ReadonlySet<string>): void {
    this.#known.set(session, { toolsVersion, required });
  }
}

/** The tools of a session, page by page. */
export class ToolPages {
  readonly required = new Set<string>();
  /** As the session had it when the first page was asked for. */
  readonly toolsVersion: number;
  #pages = 0;

  constructor(toolsVersion: number) {
    this.toolsVersion = toolsVersion;
  }

  /** The cursor of the next page; undefined when there is none. */
  take(answer: Frame): string | undefined {
    const result = answer.kind === 'result' ? readPayload(answer) : undefined;
    const tools = Array.isArray(result?.tools) ? result.tools : [];
    for (const tool of tools) {
      const { name, execution } = asFields(tool) ?? {};
      if (typeof name === 'string' && asFields(execution)?.taskSupport === 'required') this.required.add(name);
    }
    this.#pages += 1;
    const cursor = result?.nextCursor;
    return typeof cursor === 'string' && this.#pages < MAX_PAGES ? cursor : undefined;
  }
}

/** The same call, to run as a task that is kept for so long. */
export function asTask(call: Frame, ttl: number): Frame {
  const params = ObjectEditor.read(call.bytes, call.payloadStart, ['task']);
  params?.set('task', Buffer.from(JSON.stringify({ ttl })));
  return editFrame(call, params?.edits() ?? []);
}

export type CreatedTask = Fields & { readonly taskId: string };

/** The task a call has become; undefined: it was answered at once. */
export function createdTask(result: Frame): CreatedTask | undefined {
  const task = asFields(readPayload(result)?.task);
  return typeof task?.taskId === 'string' ? { ...task, taskId: task.taskId } : undefined;
}
