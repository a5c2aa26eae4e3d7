/** The aggregate's own answers to `initialize` and `server/discover`, which are given before any server is known. */
import { asFields, type Fields } from '../mcp/vocabulary/payload.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import type { InitializeResult } from '../relay/shared/legacy/initialize-result.ts';
import type { Member } from './members.ts';
import { shownName } from './names.ts';

/** The way in which clients get the tools of the servers: all in one list, or by a search. */
export type Shows = 'all' | 'search';

/** Characters of the instructions of one server; each of them is read by a model in every session. */
const MAX_INSTRUCTIONS = 4000;
/** Characters of the capabilities of one server. */
const MAX_CAPABILITIES = 16 * 1024;

export interface AggregateInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** Instructions and capabilities of the servers, by their names, as their handshakes told. They outlive the sessions. */
export class KnownServers {
  readonly #instructions = new Map<string, string>();
  readonly #capabilities = new Map<string, Fields>();

  note(member: Member, { instructions, capabilities }: InitializeResult): void {
    const { name } = member;
    this.noteInstructions(member, instructions);
    this.#capabilities.delete(name);
    if (JSON.stringify(capabilities).length <= MAX_CAPABILITIES) this.#capabilities.set(name, capabilities);
  }

  noteInstructions({ name }: Member, instructions: unknown): void {
    this.#instructions.set(name, typeof instructions === 'string' ? instructions.slice(0, MAX_INSTRUCTIONS) : '');
  }

  /** Returns true if the server has told its instructions, even if it has none. */
  has({ name }: Member): boolean {
    return this.#instructions.has(name);
  }

  keepOnly(members: readonly Member[]): void {
    for (const known of [this.#instructions, this.#capabilities]) {
      for (const name of known.keys()) if (!members.some((member) => member.name === name)) known.delete(name);
    }
  }

  /** Returns what these servers can do besides what is promised in any case, such as extensions. */
  capabilities(members: readonly Member[]): Fields {
    return members.reduce<Fields>((all, { name }) => merged(all, this.#capabilities.get(name) ?? {}), {});
  }

  /** Returns instructions with a heading for each of these servers. */
  instructions(members: readonly Member[], shows: Shows): string {
    const parts = members.map((member) => {
      const { name } = member;
      const names = member.prefix === '' ? '' : `Its tools and prompts begin with ${shownName(member, '')}.`;
      return [`# ${name}`, names, this.#instructions.get(name) ?? ''].filter((part) => part !== '').join('\n\n');
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

/** Adds what the second has and the first has not, in nested objects, too. */
function merged(first: Fields, second: Fields): Fields {
  const all: Record<string, unknown> = { ...second, ...first };
  for (const [key, value] of Object.entries(first)) {
    const [one, other] = [asFields(value), asFields(second[key])];
    if (one !== undefined && other !== undefined) all[key] = merged(one, other);
  }
  return all;
}

export interface OfferOptions {
  readonly revision: Revision;
  readonly info: AggregateInfo;
  /** The capabilities of the servers, as far as they are known. */
  readonly known: Fields;
  readonly instructions: string;
}

/** The answer to `initialize`. */
export function offerOf({ revision, info, known, instructions }: OfferOptions): InitializeResult {
  const { completions, tasks, ...others } = merged({ ...CAPABILITIES, tasks: TASKS }, known);
  return {
    protocolVersion: revision.id,
    capabilities: {
      ...others,
      ...(revision.features.completionsCapability && { completions }),
      ...(revision.features.tasks && { tasks }),
    },
    serverInfo: info,
    instructions,
  };
}
