import type { Environment } from './parse/servers/child-environment.ts';

/**
 * Whether output may have colours: on a terminal that has them, unless NO_COLOR says no [no-color.org], and elsewhere
 * where FORCE_COLOR says yes.
 */
export function allowsColor(isTerminal: boolean, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  const forced = env.FORCE_COLOR;
  if (forced) return forced !== '0' && forced !== 'false';
  return isTerminal && env.TERM !== 'dumb';
}
