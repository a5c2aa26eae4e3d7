import type { ProbeOutcome } from '../mcp/classify/probe-answer.ts';
import { type Discovery, parseImplementation } from '../mcp/vocabulary/discover.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { LIST_PROMPTS, LIST_RESOURCE_TEMPLATES, LIST_RESOURCES, LIST_TOOLS } from '../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../mcp/vocabulary/payload.ts';
import { type Era, findRevision } from '../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../printable.ts';
import type { Findings } from './findings.ts';
import type { ItemCount, Offer, OfferTransport } from './report.ts';

const NOT_ASKED: ItemCount = { state: 'not-asked' };

/** An offer while it is probed. After the time limit the report has what was found so far. */
export class OfferDraft implements Offer {
  readonly transport: OfferTransport;
  readonly era: Era;
  works = false;
  saw = 'not tried';
  revision: string | undefined = undefined;
  supportedRevisions: readonly string[] | undefined = undefined;
  session: Offer['session'] = undefined;
  serverStream: Offer['serverStream'] = undefined;
  serverInfo: Implementation | undefined = undefined;
  capabilities: readonly string[] = [];
  tools: ItemCount = NOT_ASKED;
  resources: ItemCount = NOT_ASKED;
  resourceTemplates: ItemCount = NOT_ASKED;
  prompts: ItemCount = NOT_ASKED;

  constructor(transport: OfferTransport, era: Era) {
    this.transport = transport;
    this.era = era;
  }

  /** Records an InitializeResult. */
  accepted(result: unknown, findings: Findings): void {
    const { protocolVersion, capabilities, serverInfo } = asFields(result) ?? {};
    this.works = true;
    this.saw = 'answered';
    this.revision = typeof protocolVersion === 'string' ? protocolVersion : undefined;
    this.serverInfo = parseImplementation(serverInfo);
    this.capabilities = nameCapabilities(capabilities);
    if (findRevision(this.revision) === undefined) {
      const chosen = this.revision === undefined ? 'none' : toPrintable(this.revision, 40);
      findings.problem(`In its answer to initialize it chose revision ${chosen}, which is not known here.`);
    }
  }

  /** Records a DiscoverResult, if there is one. */
  discovered(revision: string, discovery: Discovery | undefined): void {
    this.works = true;
    this.saw = discovery === undefined ? 'an error of the modern era' : 'answered';
    this.revision = revision;
    this.supportedRevisions = discovery?.supportedVersions;
    this.serverInfo = discovery?.serverInfo;
    this.capabilities = nameCapabilities(discovery?.capabilities);
  }
}

/** `{tools: {}, resources: {subscribe: true}}` → `resources`, `resources.subscribe`, `tools`. */
export function nameCapabilities(capabilities: unknown): readonly string[] {
  const names: string[] = [];
  for (const [name, value] of Object.entries(asFields(capabilities) ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    names.push(name);
    for (const [sub, on] of Object.entries(asFields(value) ?? {})) if (on === true) names.push(`${name}.${sub}`);
  }
  return names.sort();
}

/** Limit of pages per list; further entries are not counted. */
export const MAX_PAGES = 50;

export interface ListAnswer {
  readonly outcome: ProbeOutcome;
  readonly summary: string;
}

/** Sends a request to the server over its transport. Rejects only when the time is up. */
export type Ask = (method: string, params: Fields) => Promise<ListAnswer>;

const LISTS = [
  { member: 'tools', capability: 'tools', method: LIST_TOOLS, items: 'tools' },
  { member: 'resources', capability: 'resources', method: LIST_RESOURCES, items: 'resources' },
  {
    member: 'resourceTemplates',
    capability: 'resources',
    method: LIST_RESOURCE_TEMPLATES,
    items: 'resourceTemplates',
  },
  { member: 'prompts', capability: 'prompts', method: LIST_PROMPTS, items: 'prompts' },
] as const;

/** Counts the entries of every list that the server declares. If none can be listed, the offer does not work. */
export async function takeInventory(offer: OfferDraft, findings: Findings, ask: Ask): Promise<void> {
  let asked = 0;
  let failed = 0;
  for (const { member, capability, method, items } of LISTS) {
    if (!offer.capabilities.includes(capability)) {
      offer[member] = { state: 'not-declared' };
      continue;
    }
    asked += 1;
    const count = await countItems(ask, method, items);
    offer[member] = count;
    if (count.state === 'failed') {
      failed += 1;
      findings.problem(`It declares ${capability}, but ${method} fails: ${count.saw}.`);
    } else if (count.state === 'counted' && !count.isComplete) {
      findings.problem(`${method} does not come to an end: stopped after ${count.count} entries.`);
    }
  }
  if (asked > 0 && failed === asked) offer.works = false;
}

async function countItems(ask: Ask, method: string, member: string): Promise<ItemCount> {
  const cursors = new Set<string>();
  let cursor: string | undefined;
  let count = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { outcome, summary } = await ask(method, cursor === undefined ? {} : { cursor });
    if (outcome.kind !== 'result') return { state: 'failed', saw: summary };
    const result = asFields(outcome.result) ?? {};
    const items = result[member];
    if (!Array.isArray(items)) return { state: 'failed', saw: `its result holds no ${member}` };
    count += items.length;
    const { nextCursor } = result;
    if (typeof nextCursor !== 'string') return { state: 'counted', count, isComplete: true };
    if (cursors.has(nextCursor)) break;
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  return { state: 'counted', count, isComplete: false };
}
