import type { ResponseHead } from '../http/client/http-call.ts';
import { classifyInitialize } from '../mcp/classify/probe-answer.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import { INITIALIZE, INITIALIZED } from '../mcp/vocabulary/methods.ts';
import { findRevision, OLDEST_REVISION } from '../mcp/vocabulary/revisions.ts';
import { askEventStream } from '../upstream/detect/ask/ask-event-stream.ts';
import { describeStatus } from '../upstream/detect/ask/describe-outcome.ts';
import { endSession } from '../upstream/detect/attempts/own-attempts.ts';
import { createSessionKey, isSessionId, type SessionKey } from '../upstream/remote/session-key.ts';
import { notificationFrame, requestFrame } from '../wire/write-message.ts';
import { createInitializeRequest } from './handshake.ts';
import type { HttpProbe, Progress } from './http-probe.ts';
import { takeInventory } from './inventory.ts';
import { OfferDraft } from './offer-draft.ts';
import { STREAM_TIMEOUT_MS } from './probe-config.ts';

/** Streamable HTTP with a handshake, with or without a session. */
export async function probeStreamable(probe: HttpProbe): Promise<Progress> {
  const { findings } = probe;
  const offer = findings.offer(new OfferDraft('streamable-http', 'legacy'));
  const answer = await probe.post(createInitializeRequest(probe.takeId(), probe.options.clientInfo), {});
  const { outcome, words, head } = answer;
  offer.saw = words;
  const verdict = classifyInitialize(outcome);
  if (outcome.kind !== 'result') return probe.refused(`POST ${INITIALIZE}`, verdict, answer);
  offer.accepted(outcome.result, findings);
  const key = openSession(probe, offer, head);
  await sayInitialized(probe, key);
  await takeInventory(offer, findings, (method, params) =>
    probe.post(requestFrame(probe.takeId(), method, params), key.headers),
  );
  await tryServerStream(probe, offer, key);
  return 'go-on';
}

function openSession(probe: HttpProbe, offer: OfferDraft, head: ResponseHead | undefined): SessionKey {
  const offered = head?.headers[SESSION_ID_HEADER];
  const id = isSessionId(offered) ? offered : undefined;
  if (offered !== undefined && id === undefined) {
    probe.findings.problem('It gives a session id that cannot be sent back.');
  }
  offer.session = id === undefined ? 'stateless' : 'session';
  const key = createSessionKey(id, findRevision(offer.revision) ?? OLDEST_REVISION, 0);
  if (id !== undefined) {
    probe.onClose(async () => {
      const { clock } = probe.options.deps;
      const startedMs = clock.now();
      const status = await endSession(probe.target, id, key.headers);
      const saw = status === undefined ? 'no answer' : describeStatus(status);
      probe.findings.steps.add({ request: 'DELETE', saw, status, tookMs: clock.now() - startedMs });
    });
  }
  return key;
}

async function sayInitialized(probe: HttpProbe, { headers }: SessionKey): Promise<void> {
  const { head, words } = await probe.post(notificationFrame(INITIALIZED), headers);
  if (head !== undefined && head.status < 300) return;
  probe.findings.problem(`It does not take ${INITIALIZED}: ${words}. Some clients give up on that.`);
}

/** What servers without the stream answer. */
const WITHOUT_STREAM: ReadonlySet<number> = new Set([400, 404, 405, 501]);

/** [spec 2025-11-25 transports#listening-for-messages-from-the-server] a server need not offer one. */
async function tryServerStream(probe: HttpProbe, offer: OfferDraft, { headers }: SessionKey): Promise<void> {
  const question = { headers, until: 'open', timeoutMs: STREAM_TIMEOUT_MS, signal: probe.options.signal } as const;
  const { outcome, words } = await probe.findings.steps.run('GET for an event stream, in the session', () =>
    askEventStream(probe.target, question),
  );
  if (outcome.kind === 'found') {
    offer.serverStream = 'offered';
  } else if (outcome.kind === 'status' && WITHOUT_STREAM.has(outcome.http.status)) {
    offer.serverStream = 'not-offered';
  } else {
    offer.serverStream = 'failing';
    probe.findings.problem(
      `Calls by POST work, but the stream by GET fails: ${words}. What the server says outside of calls (changed lists, updated resources) does not arrive.`,
    );
  }
}
