import { fileURLToPath } from 'node:url';
import type { ChildSpec } from '../../src/process/child.ts';

/** The path of a program in test/fixtures/servers. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/servers/${name}.js`, import.meta.url));

export interface SpecOverrides extends Partial<ChildSpec> {
  readonly command?: string;
}

/** A child that runs a fixture with node. */
export function fixtureSpec(name: string, args: readonly string[] = [], overrides: SpecOverrides = {}): ChildSpec {
  return nodeSpec([fixture(name), ...args], { name, ...overrides });
}

/** A child that runs a line of JavaScript. */
export function scriptSpec(script: string, overrides: SpecOverrides = {}): ChildSpec {
  return nodeSpec(['-e', script], overrides);
}

function nodeSpec(args: readonly string[], overrides: SpecOverrides): ChildSpec {
  const env = { PATH: process.env.PATH ?? '' };
  return {
    name: 'test',
    command: process.execPath,
    args,
    cwd: undefined,
    env,
    withheldEnv: [],
    graceMs: 5000,
    ...overrides,
  };
}
