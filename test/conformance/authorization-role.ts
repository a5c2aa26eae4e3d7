/**
 * The suite as a protected server and its authorization server; clients of either era over stdio through
 * `mcp-portage connect`, whose user has a browser. The official clients leave the way to a token to the program around
 * them, so there is none to compare with: what the suite requires is the measure, and every check of it has to pass.
 */
import { join } from 'node:path';
import { type ClientMode, ERA_OF, OTHER_ERA, scoreScenarios } from './client-role.ts';
import { asRequired, type RoleScores } from './compare.ts';
import { type CheckOutcome, type CheckStatus, listClientScenarios, type RoleRun, type Score } from './suite.ts';

/** Of extensions, so in no revision's list. */
const EXTENSIONS = [
  'auth/client-credentials-basic',
  'auth/client-credentials-jwt',
  'auth/wif-jwt-bearer',
  'auth/enterprise-managed-authorization',
  'auth/dpop',
  'auth/dpop-nonce',
];

export async function scoreAuthorizationRole(run: RoleRun): Promise<RoleScores> {
  const { suite, revision, results } = run;
  const listed = await listClientScenarios(suite, revision);
  const scenarios = [...listed.filter((scenario) => scenario.startsWith('auth/')), ...EXTENSIONS];
  const era = ERA_OF[revision];
  const scoreAs = async (...mode: ClientMode): Promise<Score> => {
    const folder = join(results, [revision, 'authorization', ...mode].join('-'));
    return withoutRepetition(await scoreScenarios(run, { scenarios, mode, folder }));
  };
  const [connect, other] = await Promise.all([scoreAs(era), scoreAs(OTHER_ERA[era], '--protocol', era)]);
  return {
    title: `${revision}, client role, authorization`,
    baseline: 'required',
    direct: asRequired(connect, other),
    bridged: { connect, [`${OTHER_ERA[era]} client`]: other },
  };
}

/** How often something was checked depends on how many requests a client of that era makes; the worst outcome counts. */
function withoutRepetition(outcomes: readonly (readonly [check: string, outcome: CheckOutcome])[]): Score {
  const score = new Map<string, CheckOutcome>();
  for (const [check, outcome] of outcomes) {
    const name = check.replace(/ #\d+$/, '');
    const before = score.get(name);
    if (before === undefined || RANKS.indexOf(outcome.status) > RANKS.indexOf(before.status)) score.set(name, outcome);
  }
  return score;
}

const RANKS: readonly CheckStatus[] = ['SKIPPED', 'INFO', 'SUCCESS', 'WARNING', 'FAILURE'];
