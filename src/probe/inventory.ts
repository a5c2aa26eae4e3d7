import type { ProbeOutcome } from '../mcp/classify/probe-answer.ts';
import { LIST_PROMPTS, LIST_RESOURCE_TEMPLATES, LIST_RESOURCES, LIST_TOOLS } from '../mcp/vocabulary/methods.ts';
import { asFields, type Fields } from '../mcp/vocabulary/payload.ts';
import type { Findings } from './findings.ts';
import type { OfferDraft } from './offer-draft.ts';
import type { ItemCount } from './report.ts';

/** A server that has more is counted up to here. */
export const MAX_PAGES = 50;

export interface ListAnswer {
  readonly outcome: ProbeOutcome;
  readonly words: string;
}

/** Sends one request to the server, over whatever transport. Rejects only when the time is up. */
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

/** Counts what a server has of everything it declares. If nothing of that can be listed, the offer does not work. */
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
    const { outcome, words } = await ask(method, cursor === undefined ? {} : { cursor });
    if (outcome.kind !== 'result') return { state: 'failed', saw: words };
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
