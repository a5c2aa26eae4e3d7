import type { Deps } from '../deps.ts';
import type { BridgeError } from '../errors.ts';
import type { Revision } from '../mcp/vocabulary/revisions.ts';
import { INVALID_PARAMS } from '../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import type { InitializeResult } from '../relay/shared/legacy/initialize-result.ts';
import type { ListKind } from './lists.ts';
import { type ListSource, MemberLists } from './member-lists.ts';
import type { Member, Members } from './members.ts';
import { MAX_NEAREST } from './names.ts';
import { nearestNames } from './nearest-names.ts';
import { type AggregateInfo, KnownServers, offerOf, type Shows } from './offer.ts';
import { shownNames } from './routing.ts';
import type { ToolSearch } from './search/tool-search.ts';

export interface AggregateOptions {
  readonly members: Members;
  readonly shows: Shows;
  readonly deps: Deps;
}

/** Reasons that were logged, so that each is logged once until it is over. */
const MAX_NOTED = 1000;

/** The state that all clients of the aggregate share. */
export class Aggregate {
  readonly members: Members;
  readonly shows: Shows;
  readonly deps: Deps;
  readonly info: AggregateInfo;
  readonly known = new KnownServers();
  /** Undefined if all tools are listed. */
  readonly search: ToolSearch | undefined;
  readonly #stopHearing: () => void;
  readonly #noted = new Set<string>();

  constructor({ members, shows, deps }: AggregateOptions, info: AggregateInfo, search: ToolSearch | undefined) {
    this.members = members;
    this.shows = shows;
    this.deps = deps;
    this.info = info;
    this.search = search;
    this.#stopHearing = members.onChange(() => {
      this.known.keepOnly(members.all);
      this.search?.keepOnly(members.all);
    });
  }

  close(): void {
    this.#stopHearing();
  }

  /** Returns the servers that exist for a caller, in the order of the file. */
  membersFor(principal: string | undefined): readonly Member[] {
    return this.members.all.filter((member) => member.isFor(principal));
  }

  /** The answer to `initialize` for a caller, which is given before any server is asked. */
  offer(members: readonly Member[], revision: Revision): InitializeResult {
    const instructions = this.known.instructions(members, this.shows);
    return offerOf({ revision, info: this.info, known: this.known.capabilities(members), instructions });
  }

  /** Creates the lists of one client. */
  listsFor(source: ListSource, arrivedLate: (kind: ListKind) => void): MemberLists {
    return new MemberLists({
      source,
      clock: this.deps.clock,
      arrivedLate,
      leftOut: (member, reason) => this.#leftOut(member, reason),
      truncated: (member, kind) => {
        const what = `The list ${kind.method} of the server ${member.name} is too long; what is beyond the limit is left out.`;
        this.#note(`${member.name} ${kind.method}`, () => this.deps.log.warn({ server: member.name }, what));
      },
    });
  }

  #leftOut({ name }: Member, { code, message }: BridgeError): void {
    const text = `the server ${name} is left out of a list: ${message}`;
    this.#note(`${name} ${code}`, () => this.deps.log.warn({ server: name, code }, text));
  }

  /** A server has answered, so its next failure is news. */
  answered({ name }: Member): void {
    for (const noted of this.#noted) if (noted.startsWith(`${name} `)) this.#noted.delete(noted);
  }

  conflict(shown: string, first: Member, second: Member): void {
    const text = `${second.name} has ${JSON.stringify(shown.slice(0, 100))}, which ${first.name} has, too: the one of ${first.name} is shown. Give one of the two servers a portage.prefix of its own.`;
    this.#note(`${second.name} conflict ${shown}`, () => this.deps.log.warn({ server: second.name }, text));
  }

  #note(key: string, log: () => void): void {
    if (this.#noted.has(key) || this.#noted.size >= MAX_NOTED) return;
    this.#noted.add(key);
    log();
  }

  /** The error for a tool or a prompt that no server has. [spec 2025-11-25 server/tools#error-handling] */
  unknownName(lists: MemberLists, members: readonly Member[], list: ListKind, name: string): RpcError {
    const what = list.items === 'tools' ? 'tool' : 'prompt';
    const near = nearestNames(name, shownNames(lists, members, list), MAX_NEAREST);
    const hint = near.length === 0 ? '' : ` Did you mean ${near.join(', ')}?`;
    return { code: INVALID_PARAMS, message: `Unknown ${what}: ${name.slice(0, 200)}.${hint}` };
  }
}
