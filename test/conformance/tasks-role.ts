/**
 * The suite as a client of the tasks extension, before a server of 2025-11-25 whose tools can or must run as tasks. No
 * server of that revision has the extension itself, so there is none to compare with: what the suite requires is the
 * measure.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startBridge } from '../support/bridge.ts';
import { asRequired, type RoleScores } from './compare.ts';
import { withHttpServer } from './server-role.ts';
import { type CheckOutcome, type RoleRun, type Score, scoreServerScenario } from './suite.ts';

/** Of an extension, so in no revision's list. */
const SCENARIOS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
];

const STDIO = '--tasks-stdio';
const HTTP = '--tasks-http';

export async function scoreTasksRole({ suite, programs, results, turns }: RoleRun): Promise<RoleScores> {
  const { server } = programs;
  const revision = '2026-07-28';
  const command = [process.execPath, server, STDIO] as const;
  const scoreThrough = async (name: string, args: readonly string[]): Promise<Score> => {
    const bridge = await startBridge(args);
    // The aggregate is served where a single server would be.
    const url = new URL('/mcp', bridge.url);
    const score = new Map<string, CheckOutcome>();
    try {
      for (const scenario of SCENARIOS) {
        const outputDir = join(results, `tasks-${name}`, scenario);
        const checks = await scoreServerScenario({ suite, revision, url, scenario, outputDir });
        for (const [check, outcome] of checks) score.set(check, outcome);
      }
    } finally {
      await bridge.stop();
    }
    return score;
  };
  // The suite calls the tools by their own names.
  const entry = { command: command[0], args: command.slice(1), portage: { prefix: '' } };
  const file = join(results, 'tasks.json');
  await writeFile(file, JSON.stringify({ mcpServers: { tasks: entry } }));
  const [session, url, aggregate] = await Promise.all([
    turns.run(() => scoreThrough('session', ['--isolation', 'session', '--', ...command])),
    turns.run(() => withHttpServer(server, HTTP, (at) => scoreThrough('url', [at.href]))),
    turns.run(() => scoreThrough('aggregate', ['--config', file, '--aggregate'])),
  ]);
  return {
    title: `${revision}, server role, tasks`,
    baseline: 'required',
    direct: asRequired(session, url, aggregate),
    bridged: { session, url, aggregate },
  };
}
