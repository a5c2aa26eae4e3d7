/** The suite as a server: the same client directly over HTTP, and over stdio through `mcp-portage connect`. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RoleScores } from './compare.ts';
import { listClientScenarios, type Score, scoreClient } from './suite.ts';

const CLIENT = fileURLToPath(new URL('./client.ts', import.meta.url));
/** Authorization is no business of a bridge that has no credentials of its own. */
const LEFT_OUT = /^auth\//;
/** Measures milliseconds, so a busy machine may need another try. */
const TIMED = 'sse-retry';
const TIMED_TRIES = 3;

export async function scoreClientRole(results: string): Promise<RoleScores> {
  const scenarios = (await listClientScenarios()).filter((scenario) => !LEFT_OUT.test(scenario));
  const scoreAs = async (mode: 'direct' | 'bridged'): Promise<Score> => {
    const scores: Score[] = [];
    for (const scenario of scenarios) scores.push(await scoreScenario(mode, scenario, join(results, `client-${mode}`)));
    return new Map(scores.flatMap((score) => [...score]));
  };
  return { role: 'client', direct: await scoreAs('direct'), bridged: { connect: await scoreAs('bridged') } };
}

async function scoreScenario(mode: 'direct' | 'bridged', scenario: string, results: string): Promise<Score> {
  const command = [process.execPath, `--import=${import.meta.resolve('tsx')}`, CLIENT, mode];
  for (let attempt = 1; ; attempt += 1) {
    const folder = join(results, `${scenario}-${attempt}`);
    const score = await scoreClient(command.map((word) => JSON.stringify(word)).join(' '), scenario, folder);
    const isFine = [...score.values()].every(({ status }) => status !== 'FAILURE' && status !== 'WARNING');
    if (isFine || scenario !== TIMED || attempt === TIMED_TRIES) return score;
  }
}
