import type { Member, MemberServer } from '../aggregate/members.ts';
import { environmentOfMember, headersOfMember } from '../config/aggregate.ts';
import type { ServerConfig } from '../config/server.ts';
import { nameOfPrincipal } from '../http/auth/callers.ts';
import { CALLER_HEADER } from '../http/headers.ts';

/**
 * Creates the member of the aggregate that a server is; undefined: it is not part of it. A server whose configuration has
 * changed is another member.
 */
export function createMember(
  config: ServerConfig,
  server: { readonly running: MemberServer | undefined; start(): Promise<MemberServer> },
): Member | undefined {
  const { listing, remote } = config;
  if (listing?.membership === undefined) return undefined;
  const { name, callers } = listing;
  const { prefix, alwaysShow } = listing.membership;
  return {
    name,
    prefix,
    alwaysShow,
    // At the aggregate, the principal may have a digest of headers that are no matter of this server.
    isFor: (principal) =>
      callers === undefined || (principal !== undefined && callers.includes(nameOfPrincipal(principal))),
    viewOf: ({ headers, environment }) => {
      const caller = remote.exchange === undefined ? undefined : headers?.[CALLER_HEADER];
      const own = headersOfMember(headers, config);
      return {
        headers: caller === undefined ? own : { ...own, [CALLER_HEADER]: caller },
        environment: environmentOfMember(environment, config),
      };
    },
    get running() {
      return server.running;
    },
    start: () => server.start(),
  };
}
