import type { Era } from '../mcp/revisions.ts';
import type { ClientAdvice, ClientKind, Offer, OfferTransport } from './report.ts';

/** Which eras mcp-portage joins: first the client's, then the server's. */
export const JOINED_ERAS: Readonly<Record<Era, Readonly<Record<Era, boolean>>>> = {
  legacy: { legacy: true, modern: false },
  modern: { legacy: false, modern: false },
};

interface ClientTraits {
  readonly client: ClientKind;
  readonly transport: OfferTransport;
  readonly era: Era;
  /** The verb that gives mcp-portage the face this client needs. */
  readonly verb: 'serve' | 'connect';
}

/** In the order of the table. */
const CLIENTS: readonly ClientTraits[] = [
  { client: 'stdio-legacy', transport: 'stdio', era: 'legacy', verb: 'connect' },
  { client: 'http-sse', transport: 'http-sse', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-legacy', transport: 'streamable-http', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-modern', transport: 'streamable-http', era: 'modern', verb: 'serve' },
  { client: 'stdio-modern', transport: 'stdio', era: 'modern', verb: 'connect' },
];

/**
 * What each kind of client has to do to use the server.
 * @param shownTarget the target as it stands on a command line
 */
export function adviseClients(offers: readonly Offer[], shownTarget: string): readonly ClientAdvice[] {
  const working = offers.filter((offer) => offer.works);
  return CLIENTS.map(({ client, transport, era, verb }): ClientAdvice => {
    const isDirect = working.some((offer) => offer.transport === transport && offer.era === era);
    if (isDirect) return { client, way: 'direct', command: undefined };
    if (working.length === 0) return { client, way: 'none', command: undefined };
    const isJoined = working.some((offer) => JOINED_ERAS[era][offer.era]);
    return isJoined
      ? { client, way: 'portage', command: `mcp-portage ${verb} ${shownTarget}` }
      : { client, way: 'not-yet', command: undefined };
  });
}
