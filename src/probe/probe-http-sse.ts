import { classifyInitialize } from '../mcp/classify/probe-answer.ts';
import { INITIALIZED } from '../mcp/vocabulary/methods.ts';
import { askEventStream } from '../upstream/detect/ask/ask-event-stream.ts';
import { type LinkAnswer, LinkClient } from '../upstream/detect/ask/link-client.ts';
import { untilAborted } from '../upstream/detect/attempts/wait.ts';
import { createHttpSseDialer } from '../upstream/http-sse/dialer.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import { createInitializeRequest } from './handshake.ts';
import type { HttpProbe, Progress } from './http-probe.ts';
import { takeInventory } from './inventory.ts';
import { OfferDraft } from './offer-draft.ts';
import { STEP_TIMEOUT_MS } from './probe-config.ts';

const EVENT_STREAM = 'GET for an event stream';

/** HTTP+SSE: first whether the stream is what it should be, then a session over it. */
export async function probeHttpSse(probe: HttpProbe): Promise<Progress> {
  const { findings, options, target } = probe;
  const { signal, deps, clientInfo, http, remote, maxMessageBytes } = options;
  const offer = findings.offer(new OfferDraft('http-sse', 'legacy'));
  const stream = await findings.steps.run(EVENT_STREAM, () =>
    askEventStream(target, { headers: {}, until: 'endpoint', timeoutMs: STEP_TIMEOUT_MS, signal }),
  );
  offer.saw = stream.words;
  if (stream.outcome.kind !== 'found') {
    // Where POST works nobody needs this stream, and what a server makes of it is its own affair.
    if (findings.offers.some((other) => other.works)) return 'go-on';
    return probe.refused(EVENT_STREAM, classifyInitialize(stream.outcome), stream);
  }

  const { url } = target;
  const dialer = createHttpSseDialer({ url, http, timeouts: remote.timeouts, maxMessageBytes, deps });
  const client = new LinkClient(dialer, deps.clock);
  probe.onClose(async () => client.close());
  const ask = (frame: Frame): Promise<LinkAnswer> =>
    findings.steps.run(`${frame.method} over HTTP+SSE`, () => untilAborted(client.ask(frame, STEP_TIMEOUT_MS), signal));

  const { outcome, words } = await ask(createInitializeRequest(client.takeId(), clientInfo));
  offer.saw = words;
  if (outcome.kind !== 'result') {
    findings.problem(`It announces an endpoint for HTTP+SSE, but initialize over it fails: ${words}.`);
    return 'go-on';
  }
  offer.accepted(outcome.result, findings);
  offer.session = 'session';
  client.notify(INITIALIZED);
  await takeInventory(offer, findings, (method, params) => ask(requestFrame(client.takeId(), method, params)));
  return 'go-on';
}
