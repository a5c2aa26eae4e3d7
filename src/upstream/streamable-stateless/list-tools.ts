import { BridgeError } from '../../errors.ts';
import { LIST_TOOLS } from '../../mcp/methods.ts';
import { type RequestMetadata, readRequestMetadata, stampMetadata } from '../../mcp/request-metadata.ts';
import type { Lane } from '../../relay/lane.ts';
import type { Frame } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import type { Outgoing } from '../remote/outgoing.ts';
import type { StatelessCallHost } from './call-host.ts';
import { Post, type PostEnd } from './post.ts';
import { messageHeaders, postRequest } from './post-request.ts';
import type { AskForPage } from './tool-headers.ts';

/** A call waits for the list; a server that is slower than this with all its pages gets the call without it. */
const LIST_TIMEOUT_MS = 10_000;

/** Asks for pages of the list as the client of this call would: a server may show each another one. */
export function listToolsFor({ frame, exchange }: Outgoing, host: StatelessCallHost): AskForPage {
  const metadata = readRequestMetadata(frame);
  const { clock } = host.environment.http;
  const untilMs = clock.now() + LIST_TIMEOUT_MS;
  return (cursor) => {
    if ('fault' in metadata) return Promise.reject(new BridgeError('ERR_WIRE_MESSAGE', metadata.fault));
    const request = createRequest(host.nextId(), metadata, cursor);
    return postOnce(request, { host, lane: exchange?.lane, timeoutMs: untilMs - clock.now() });
  };
}

function createRequest(id: number, metadata: RequestMetadata, cursor: string | undefined): Frame {
  const request = requestFrame(id, LIST_TOOLS, cursor === undefined ? {} : { cursor });
  // Nobody would hear what the server logs.
  return stampMetadata(request, { ...metadata, logLevel: undefined });
}

interface PostOnceOptions {
  readonly host: StatelessCallHost;
  readonly lane: Lane | undefined;
  readonly timeoutMs: number;
}

/** Resolves with the answer, a JSON-RPC error included; rejects with a BridgeError. */
function postOnce(frame: Frame, { host, lane, timeoutMs }: PostOnceOptions): Promise<Frame> {
  const { environment } = host;
  return new Promise((resolve, reject) => {
    const request = postRequest(environment, { frame, headers: messageHeaders(frame), lane });
    const cancel = environment.http.clock.after(Math.max(0, timeoutMs), () => {
      post.abort();
      reject(
        new BridgeError('ERR_UPSTREAM_TIMEOUT', `The server did not list its tools within ${LIST_TIMEOUT_MS} ms.`),
      );
    });
    const ended = (end: PostEnd): void => {
      cancel();
      if (end.kind === 'answered') resolve(end.frame);
      else if (end.kind === 'refused') reject(end.refusal.error);
      else if (end.kind === 'failed') reject(end.error);
    };
    const silent = { left() {}, responded() {}, notified() {} };
    const post = new Post({ environment, host: { ...silent, ended }, frame, request, isPaused: false });
  });
}
