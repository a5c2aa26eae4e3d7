import type { Era } from '../mcp/vocabulary/revisions.ts';
import type { ClientAdvice, ClientKind, Offer, OfferTransport } from './report.ts';

interface ClientTraits {
  readonly client: ClientKind;
  readonly transport: OfferTransport;
  readonly era: Era;
  /** The verb with which mcp-portage serves the transport this client needs. */
  readonly verb: 'serve' | 'connect';
}

/** The kinds of clients, in the order of the report's table. */
const CLIENTS: readonly ClientTraits[] = [
  { client: 'stdio-legacy', transport: 'stdio', era: 'legacy', verb: 'connect' },
  { client: 'http-sse', transport: 'http-sse', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-legacy', transport: 'streamable-http', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-modern', transport: 'streamable-http', era: 'modern', verb: 'serve' },
  { client: 'stdio-modern', transport: 'stdio', era: 'modern', verb: 'connect' },
];

/**
 * What each kind of client has to do to use the server: mcp-portage joins any of them to whatever works.
 * @param shownTarget the target as it stands on a command line
 */
export function adviseClients(offers: readonly Offer[], shownTarget: string): readonly ClientAdvice[] {
  const working = offers.filter((offer) => offer.works);
  return CLIENTS.map(({ client, transport, era, verb }): ClientAdvice => {
    if (working.length === 0) return { client, way: 'none', command: undefined };
    const isDirect = working.some((offer) => offer.transport === transport && offer.era === era);
    return isDirect
      ? { client, way: 'direct', command: undefined }
      : { client, way: 'portage', command: `mcp-portage ${verb} ${shownTarget}` };
  });
}
