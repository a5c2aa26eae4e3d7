import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { createWatchingDialer } from '../relay/watching-dialer.ts';
import type { EraDialers } from '../upstream/detect/joined-dialers.ts';
import { CLIENT_INFO } from './client-info.ts';

/** For processes that no client could end by leaving: they serve several, or clients that have no sessions. */
export function watchProcesses({ legacy, modern }: EraDialers, { limits }: Config, deps: Deps): EraDialers {
  const { requestTimeoutMs, hangTimeoutMs } = limits;
  // Where a call may be silent for ever, so may a server.
  if (requestTimeoutMs === 0 || hangTimeoutMs === 0) return { legacy, modern };
  const options = { requestTimeoutMs, hangTimeoutMs, clientInfo: CLIENT_INFO, deps };
  return {
    legacy: createWatchingDialer(legacy, { ...options, era: 'legacy' }),
    modern: createWatchingDialer(modern, { ...options, era: 'modern' }),
  };
}
