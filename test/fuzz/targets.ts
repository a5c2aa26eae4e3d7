import type { FuzzTarget } from './target.ts';
import { byteStreams, webSockets } from './targets/connections.ts';
import { envelope, oversized } from './targets/envelope.ts';
import { framing } from './targets/framing.ts';
import { grpcMessages } from './targets/grpc.ts';
import { headers } from './targets/headers.ts';
import { legacyToModern } from './targets/legacy-to-modern.ts';
import { linkFrames } from './targets/links.ts';
import { modernToLegacy } from './targets/modern-to-legacy.ts';
import { mqtt } from './targets/mqtt.ts';
import { legacyRelay, modernRelay } from './targets/relay.ts';
import { requests } from './targets/requests.ts';
import { sequences } from './targets/sequences.ts';
import { sharedLegacy, sharedModern } from './targets/shared.ts';
import { sse } from './targets/sse.ts';
import { time } from './targets/time.ts';

export const TARGETS: readonly FuzzTarget[] = [
  framing,
  envelope,
  oversized,
  sse,
  mqtt,
  time,
  headers,
  requests,
  sequences,
  webSockets,
  byteStreams,
  grpcMessages,
  linkFrames,
  legacyRelay,
  modernRelay,
  sharedLegacy,
  sharedModern,
  modernToLegacy,
  legacyToModern,
];
