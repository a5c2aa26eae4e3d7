import { createHash } from 'node:crypto';
import { CALL_TOOL as CALL_REQUEST } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import type { Frame } from '../../wire/frame.ts';
import { composeList } from '../compose-list.ts';
import { findText } from '../edit-request.ts';
import { type ListItem, readWhole, TOOLS } from '../lists.ts';
import type { MemberLists } from '../member-lists.ts';
import type { Member } from '../members.ts';
import { MAX_NEAREST, shownName } from '../names.ts';
import { nearestNames } from '../nearest-names.ts';
import { ownerOfName, shownNames } from '../routing.ts';
import { readIndexedTool } from './indexed-tool.ts';
import {
  answerDescribe,
  answerSearch,
  CALL_TOOL,
  DESCRIBE_TOOL,
  directCall,
  errorResult,
  type ResultMembers,
  readCallTool,
  SEARCH_TOOLS,
} from './search-tools.ts';
import { ToolIndex } from './tool-index.ts';

/** The tools of one client. */
interface Seen {
  readonly lists: MemberLists;
  readonly members: readonly Member[];
}

/**
 * - `passed`: the request is for a tool of a server, which gets this frame.
 * - `answered`: the bridge answers itself.
 */
export type SearchOutcome =
  | { readonly kind: 'passed'; readonly frame: Frame }
  | { readonly kind: 'answered'; readonly result: () => Promise<ResultMembers> };

/** Finds the tools of all servers. All clients share one index, since most see the same tools. */
export class ToolSearch {
  readonly #index = new ToolIndex();
  /** The digest of each server's tools, as they are in the index. */
  readonly #indexed = new Map<string, string>();

  /** Takes a request of a client that is shown the tools for searching in place of all others. */
  take(request: Frame, seen: Seen): SearchOutcome {
    const passed: SearchOutcome = { kind: 'passed', frame: request };
    if (request.method !== CALL_REQUEST) return passed;
    const args = (): unknown => readField(request, 'arguments');
    switch (findText(request, 'name')?.value) {
      case SEARCH_TOOLS:
        return { kind: 'answered', result: () => this.#search(args(), seen) };
      case DESCRIBE_TOOL:
        return { kind: 'answered', result: () => this.#describe(args(), seen) };
      case CALL_TOOL: {
        const call = readCallTool(request);
        if (typeof call !== 'string') return { kind: 'passed', frame: directCall(request, call) };
        return { kind: 'answered', result: () => Promise.resolve(errorResult(call)) };
      }
      default:
        return passed;
    }
  }

  async #search(args: unknown, { lists, members }: Seen): Promise<ResultMembers> {
    await lists.load(members, [TOOLS]);
    for (const member of members) this.#bringUpToDate(member, lists.itemsOf(member, TOOLS) ?? []);
    return answerSearch(args, this.#index, (server) => members.some(({ name }) => name === server));
  }

  #bringUpToDate(member: Member, tools: readonly ListItem[]): void {
    const digest = digestOf(tools);
    if (this.#indexed.get(member.name) === digest) return;
    this.#indexed.set(member.name, digest);
    const indexed = tools.map((tool) =>
      readIndexedTool(member.name, shownName(member, tool.key), readWhole(tool) ?? {}),
    );
    this.#index.replace(member.name, indexed);
  }

  async #describe(args: unknown, { lists, members }: Seen): Promise<ResultMembers> {
    await lists.load(members, [TOOLS]);
    return answerDescribe(args, {
      find: (name) => definitionOf(name, { lists, members }),
      nearest: (name) => nearestNames(name, shownNames(lists, members, TOOLS), MAX_NEAREST),
    });
  }

  /** Forgets the servers that are not there anymore. */
  keepOnly(members: readonly Member[]): void {
    for (const name of this.#indexed.keys()) {
      if (members.some((member) => member.name === name)) continue;
      this.#indexed.delete(name);
      this.#index.remove(name);
    }
  }
}

function definitionOf(shown: string, { lists, members }: Seen): Buffer | undefined {
  const owner = ownerOfName(lists, members, TOOLS, shown);
  if (owner.kind !== 'found') return undefined;
  for (const item of composeList({ lists, members, kind: TOOLS, conflict: () => {} })) {
    if (item.shown === shown) return item.bytes;
  }
  return undefined;
}

/** Digests of lists, which are replaced as a whole when they change. */
const digests = new WeakMap<readonly ListItem[], string>();

function digestOf(tools: readonly ListItem[]): string {
  let digest = digests.get(tools);
  if (digest === undefined) {
    const hash = createHash('sha256');
    for (const { bytes } of tools) hash.update(bytes).update('\n');
    digest = hash.digest('base64');
    digests.set(tools, digest);
  }
  return digest;
}
