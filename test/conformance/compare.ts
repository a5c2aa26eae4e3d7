import type { CheckOutcome, Score } from './suite.ts';

/** What one role of the suite says, without the bridge and with it in each way it is used. */
export interface RoleScores {
  /** Revision and role, as expected-differences.json has them. */
  readonly title: string;
  /** What `direct` is: the score without the bridge, or what the suite requires where nobody can be asked directly. */
  readonly baseline: 'direct' | 'required';
  readonly direct: Score;
  /** By the name that expected-differences.json has for the way. */
  readonly bridged: Readonly<Record<string, Score>>;
}

/** A check that passes directly and is known not to pass through the bridge. */
export interface ExpectedDifference {
  /** As in a Score; with a `*` at its end, all that begin like this. */
  readonly check: string;
  readonly reason: string;
}

export interface Difference {
  readonly check: string;
  readonly direct: CheckOutcome['status'] | 'absent';
  readonly bridged: CheckOutcome['status'] | 'absent';
  readonly explanation: string | undefined;
}

export interface Comparison {
  /** Checks that pass both ways. */
  readonly passed: number;
  /** Lost through the bridge, without an entry that allows it. */
  readonly lost: readonly Difference[];
  readonly expected: readonly Difference[];
  /** Entries for checks that do pass: they have to go. */
  readonly stale: readonly ExpectedDifference[];
}

/** Every check that passes directly has to pass through the bridge, and the bridge may not bring failures of its own. */
export function compareScores(direct: Score, bridged: Score, allowed: readonly ExpectedDifference[]): Comparison {
  const differences = [...lostChecks(direct, bridged), ...newFailures(direct, bridged)];
  const isAllowed = ({ check }: Difference) => allowed.some((entry) => covers(entry, check));
  const different = new Set(differences.map((difference) => difference.check));
  return {
    passed: [...direct].filter(([check, { status }]) => status === 'SUCCESS' && !different.has(check)).length,
    lost: differences.filter((difference) => !isAllowed(difference)),
    expected: differences.filter(isAllowed),
    stale: allowed.filter((entry) => !differences.some(({ check }) => covers(entry, check))),
  };
}

/** Returns the score to compare with where no server or client can be asked directly: every check was passed. */
export function asRequired(...scores: readonly Score[]): Score {
  const judged = scores.flatMap((score) => [...score]).filter(([, { status }]) => JUDGED.has(status));
  return new Map(judged.map(([check, outcome]) => [check, { ...outcome, status: 'SUCCESS' }]));
}

const JUDGED: ReadonlySet<string> = new Set(['SUCCESS', 'FAILURE', 'WARNING']);

/** Does the entry speak of this check? */
export function covers({ check: pattern }: ExpectedDifference, check: string): boolean {
  return pattern.endsWith('*') ? check.startsWith(pattern.slice(0, -1)) : check === pattern;
}

function lostChecks(direct: Score, bridged: Score): Difference[] {
  return [...direct].flatMap(([check, { status }]) => {
    const through = bridged.get(check);
    if (status !== 'SUCCESS' || through?.status === 'SUCCESS') return [];
    return [{ check, direct: status, bridged: through?.status ?? 'absent', explanation: through?.explanation }];
  });
}

function newFailures(direct: Score, bridged: Score): Difference[] {
  return [...bridged].flatMap(([check, { status, explanation }]) => {
    const before = direct.get(check)?.status ?? 'absent';
    if ((status !== 'FAILURE' && status !== 'WARNING') || before === 'SUCCESS' || before === status) return [];
    return [{ check, direct: before, bridged: status, explanation }];
  });
}
