import { type Discovery, parseImplementation } from '../mcp/vocabulary/discover.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { asFields } from '../mcp/vocabulary/payload.ts';
import { type Era, findRevision } from '../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../printable.ts';
import type { Findings } from './findings.ts';
import type { ItemCount, Offer, OfferTransport } from './report.ts';

const NOT_ASKED: ItemCount = { state: 'not-asked' };

/** An offer while it is being looked at. What is known when the time is up is what is reported. */
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

  /** Takes what an InitializeResult says. */
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

  /** Takes what a DiscoverResult says, if there was one. */
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
