/**
 * Tools of 2025-11-25 that can run as tasks. Their client decides whether a call does, while a modern client leaves that
 * to its server, whose part the bridge has. [spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation]
 */
import type { TaskSupport } from '../../../mcp/classify/tool-list.ts';
import { asFields, type Fields, readField, readFields } from '../../../mcp/vocabulary/payload.ts';
import { type ToolCatalog, ToolListing } from '../../../relay/tool-catalog.ts';
import { editFrame, type Frame } from '../../../wire/frame.ts';
import { ObjectEditor } from '../../../wire/json/object-editor.ts';
import type { LegacySession } from '../pool/legacy-session.ts';

export function offersTasks(capabilities: Fields): boolean {
  const requests = asFields(asFields(capabilities.tasks)?.requests);
  return asFields(requests?.tools)?.call !== undefined;
}

interface KnownTools {
  readonly toolsVersion: number;
  readonly tools: ToolCatalog;
}

/** The tools of each session that can be called as tasks. */
export class TaskTools {
  readonly #known = new WeakMap<LegacySession, KnownTools>();

  /** Undefined: nobody has looked since the tools changed. */
  supportOf(session: LegacySession, name: unknown): TaskSupport | undefined {
    const known = this.#known.get(session);
    return known?.toolsVersion === session.toolsVersion ? taskSupportIn(known.tools, name) : undefined;
  }

  /** @param toolsVersion as the session had it when the first page was asked for */
  learn(session: LegacySession, toolsVersion: number, tools: ToolCatalog): void {
    this.#known.set(session, { toolsVersion, tools });
  }
}

/** A list of tools of which only those that can be called as tasks are remembered; an unknown one is called plainly. */
export function listTaskTools(): ToolListing {
  return new ToolListing(({ taskSupport }) => taskSupport !== 'forbidden');
}

/** @param name as the client wrote it */
export function taskSupportIn(tools: ToolCatalog, name: unknown): TaskSupport {
  return (typeof name === 'string' ? tools.find(name)?.taskSupport : undefined) ?? 'forbidden';
}

/** The call as a request to run it as a task that is kept for `ttl` milliseconds. */
export function asTask(call: Frame, ttl: number): Frame {
  const params = ObjectEditor.read(call.bytes, call.payloadStart, ['task']);
  params?.set('task', Buffer.from(JSON.stringify({ ttl })));
  return editFrame(call, params?.edits() ?? []);
}

export type CreatedTask = Fields & { readonly taskId: string };

/** The task a call has become; undefined: it was answered at once, or with an id that nobody can keep. */
export function createdTask(result: Frame): CreatedTask | undefined {
  const task = asFields(readField(result, 'task'));
  const status = task && keptStatus(task);
  return typeof status?.taskId === 'string' ? { ...status, taskId: status.taskId } : undefined;
}

/** Characters of each text in what a server says of a task, which is kept as long as the task; longer ones are not. */
export const MAX_STATUS_TEXT = 4096;
const STATUS_MEMBERS = ['taskId', 'status', 'statusMessage', 'createdAt', 'lastUpdatedAt', 'ttl', 'pollInterval'];

/** Returns the part of a server's answer about a task that is kept. */
export function readStatus(result: Frame): Fields {
  return keptStatus(readFields(result, STATUS_MEMBERS));
}

function keptStatus(said: Fields): Fields {
  const kept = STATUS_MEMBERS.map((name) => [name, said[name]] as const).filter(
    ([, value]) => typeof value === 'number' || (typeof value === 'string' && value.length <= MAX_STATUS_TEXT),
  );
  return Object.fromEntries(kept);
}
