import { classifyProbe, type ProbeVerdict } from '../mcp/classify/probe-answer.ts';
import {
  createDiscoverRequest,
  createModernRequest,
  modernHeaders,
  parseDiscovery,
} from '../mcp/vocabulary/discover.ts';
import { DISCOVER } from '../mcp/vocabulary/methods.ts';
import { LATEST_MODERN_REVISION } from '../mcp/vocabulary/revisions.ts';
import type { HttpAnswer } from '../upstream/detect/ask/ask-http.ts';
import type { HttpProbe, Progress } from './http-probe.ts';
import { takeInventory } from './inventory.ts';
import { OfferDraft } from './offer-draft.ts';

/** Streamable HTTP of the modern era: one POST for each request, and nothing else. */
export async function probeModernHttp(probe: HttpProbe): Promise<Progress> {
  const offer = probe.findings.offer(new OfferDraft('streamable-http', 'modern'));
  const { answer, verdict } = await discover(probe, LATEST_MODERN_REVISION, false);
  offer.saw = answer.words;
  if (verdict.kind === 'modern') {
    await inspect(probe, offer, answer, verdict.revision);
    return 'go-on';
  }
  if (verdict.kind === 'no-common-revision') {
    offer.supportedRevisions = verdict.supported;
    probe.findings.problem(`It speaks only modern revisions that are not known here: ${verdict.supported.join(', ')}.`);
  }
  return probe.refused(`POST ${DISCOVER}`, verdict, answer);
}

interface Discovered {
  readonly answer: HttpAnswer;
  readonly verdict: ProbeVerdict;
}

async function discover(probe: HttpProbe, revision: string, isRetry: boolean): Promise<Discovered> {
  const frame = createDiscoverRequest({ id: probe.takeId(), revision, clientInfo: probe.options.clientInfo });
  const answer = await probe.post(frame, modernHeaders(DISCOVER, revision));
  const verdict = classifyProbe(answer.outcome, { carrier: 'http', requested: revision, isRetry });
  if (verdict.kind === 'modern-retry') return discover(probe, verdict.revision, true);
  if (verdict.kind !== 'headers-lost') return { answer, verdict };
  probe.findings.problem('Something on the way to the server takes the headers out of modern requests.');
  return discover(probe, revision, true);
}

async function inspect(probe: HttpProbe, offer: OfferDraft, { outcome }: HttpAnswer, revision: string): Promise<void> {
  const discovery = outcome.kind === 'result' ? parseDiscovery(outcome.result) : undefined;
  offer.discovered(revision, discovery);
  if (discovery === undefined) {
    probe.findings.problem('It answers server/discover with an error that only the modern era has, not with a result.');
  }
  const { clientInfo } = probe.options;
  await takeInventory(offer, probe.findings, (method, params) => {
    const frame = createModernRequest({ id: probe.takeId(), method, revision, clientInfo, params });
    return probe.post(frame, modernHeaders(method, revision));
  });
}
