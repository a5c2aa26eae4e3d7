/** The aggregate's own answers to `initialize` and `server/discover`, which are given before any server is known. */
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import type { InitializeResult } from '../relay/shared/legacy/initialize-result.ts';
import type { Member } from './members.ts';
import { shownName } from './names.ts';

/** How the aggregate shows the tools of its servers: all in one list, or by a search. */
export type Shows = 'all' | 'search';

/** Characters of the instructions of one server; each of them is read by a model in every session. */
const MAX_INSTRUCTIONS = 4000;

export interface AggregateInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** Instructions of the servers as far as they are known, by their names. They outlive the sessions that have read them. */
export class KnownInstructions {
  readonly #texts = new Map<string, string>();

  /** Takes note of what a server has said in its handshake. */
  note({ name }: Member, instructions: unknown): void {
    if (typeof instructions === 'string' && instructions !== '')
      this.#texts.set(name, instructions.slice(0, MAX_INSTRUCTIONS));
    else this.#texts.delete(name);
  }

  keepOnly(members: readonly Member[]): void {
    for (const name of this.#texts.keys())
      if (!members.some((member) => member.name === name)) this.#texts.delete(name);
  }

  /** Returns instructions with a heading for each of these servers. */
  of(members: readonly Member[], shows: Shows): string {
    const parts = members.map((member) => {
      const { name } = member;
      const names = member.prefix === '' ? '' : `Its tools and prompts begin with ${shownName(member, '')}.`;
      return [`# ${name}`, names, this.#texts.get(name) ?? ''].filter((part) => part !== '').join('\n\n');
    });
    const intro = `This server combines ${members.length === 1 ? 'one server' : `${members.length} servers`}.`;
    const search =
      'The tools are not listed: find them with search_tools, read their schemas with describe_tool, and call them with call_tool.';
    return [shows === 'search' ? `${intro} ${search}` : intro, ...parts].join('\n\n');
  }
}

/**
 * The capabilities that any of the servers may turn out to have. A client that was promised too little would never ask; one
 * that asks for what no server has gets an empty list.
 */
const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
  completions: {},
};

const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

export interface OfferOptions {
  readonly revision: Revision;
  readonly info: AggregateInfo;
  readonly instructions: string;
}

/** The answer to `initialize`. */
export function offerOf({ revision, info, instructions }: OfferOptions): InitializeResult {
  const { completions, ...others } = CAPABILITIES;
  return {
    protocolVersion: revision.id,
    capabilities: {
      ...others,
      ...(revision.features.completionsCapability && { completions }),
      ...(revision.features.tasks && { tasks: TASKS }),
    },
    serverInfo: info,
    instructions,
  };
}
