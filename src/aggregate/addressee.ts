/** Finds out for which server a client's request is, and how that server has to get it. */
import {
  CALL_TOOL,
  COMPLETE,
  GET_PROMPT,
  isTaskRequest,
  READ_RESOURCE,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import { type FoundText, findText, withText } from './edit-request.ts';
import { type ListKind, PROMPTS, TOOLS } from './lists.ts';
import type { MemberLists } from './member-lists.ts';
import type { Member } from './members.ts';
import { readPrefixedUri } from './names.ts';
import { type Owner, ownerOfName, ownerOfTemplate, ownerOfUri } from './routing.ts';

/**
 * - `one`: for this server, which gets the request as it is here.
 * - `unlisted`: the lists of these servers have to be read before it is known. `otherwise` holds if that does not help.
 * - `any`: for the first server in the file that knows the method, or the resource.
 * - `unknown`: no server has it.
 * - `malformed`: the request does not say for what it is.
 */
export type Addressee =
  | { readonly kind: 'one'; readonly member: Member; readonly frame: Frame; readonly own: string }
  | {
      readonly kind: 'unlisted';
      readonly members: readonly Member[];
      readonly kinds: readonly ListKind[];
      readonly otherwise: NotFound;
    }
  | NotFound
  | { readonly kind: 'malformed' };

type NotFound = { readonly kind: 'any' } | { readonly kind: 'unknown'; readonly list: ListKind; readonly name: string };

const ANY: NotFound = { kind: 'any' };
const MALFORMED: Addressee = { kind: 'malformed' };

export function addresseeOf(frame: Frame, lists: MemberLists, members: readonly Member[]): Addressee {
  const method = frame.method ?? '';
  switch (method) {
    case CALL_TOOL:
      return byName(frame, lists, members, TOOLS, findText(frame, 'name'));
    case GET_PROMPT:
      return byName(frame, lists, members, PROMPTS, findText(frame, 'name'));
    case READ_RESOURCE:
    case SUBSCRIBE:
    case UNSUBSCRIBE:
      return byUri(frame, findText(frame, 'uri'), (uri) => ownerOfUri(lists, members, uri));
    case COMPLETE: {
      const name = findText(frame, 'ref', 'name');
      if (name !== undefined) return byName(frame, lists, members, PROMPTS, name);
      return byUri(frame, findText(frame, 'ref', 'uri'), (uri) => ownerOfTemplate(lists, members, uri));
    }
    default:
      return isTaskRequest(method) ? byTask(frame, members) : ANY;
  }
}

function byName(
  frame: Frame,
  lists: MemberLists,
  members: readonly Member[],
  list: ListKind,
  name: FoundText | undefined,
): Addressee {
  if (name === undefined) return MALFORMED;
  const owner = ownerOfName(lists, members, list, name.value);
  return addressed(frame, name, owner, { kind: 'unknown', list, name: name.value });
}

function byUri(frame: Frame, uri: FoundText | undefined, find: (uri: string) => Owner): Addressee {
  if (uri === undefined) return MALFORMED;
  return addressed(frame, uri, find(uri.value), ANY);
}

function byTask(frame: Frame, members: readonly Member[]): Addressee {
  const id = findText(frame, 'taskId');
  if (id === undefined) return MALFORMED;
  const task = readPrefixedUri(members, id.value);
  return task === undefined ? ANY : addressed(frame, id, { kind: 'found', ...task }, ANY);
}

function addressed(frame: Frame, text: FoundText, owner: Owner, otherwise: NotFound): Addressee {
  switch (owner.kind) {
    case 'unknown':
      return otherwise;
    case 'unlisted':
      return { ...owner, otherwise };
    case 'found': {
      const { member, own } = owner;
      return { kind: 'one', member, frame: withText(frame, text, own), own };
    }
  }
}

/** Reads the lists that it takes to find the server. */
export async function findAddressee(frame: Frame, lists: MemberLists, members: readonly Member[]): Promise<Addressee> {
  const first = addresseeOf(frame, lists, members);
  if (first.kind !== 'unlisted') return first;
  await lists.load(first.members, first.kinds);
  const second = addresseeOf(frame, lists, members);
  return second.kind === 'unlisted' ? second.otherwise : second;
}
