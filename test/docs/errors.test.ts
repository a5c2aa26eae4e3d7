import { readFile } from 'node:fs/promises';
import test from 'ava';
import { type StateFault, stateError } from '../../src/eras/modern-to-legacy/questions/request-state.ts';
import { ERROR_CODES, type ErrorAudiences } from '../../src/errors.ts';
import { TASK_GIVEN_UP, TASK_LOST } from '../../src/mcp/vocabulary/task-extension.ts';

const text = await readFile(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8');
const sections = new Map(
  text
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.split('\n', 1)[0] ?? '', section.split(/^## /m, 1)[0] ?? ''] as const),
);

function seenAs({ rpc, http, exit }: ErrorAudiences): string {
  const parts = [rpc === undefined ? '' : `JSON-RPC ${rpc}`, http === undefined ? '' : `HTTP ${http}`];
  return [...parts, exit === undefined ? '' : `exit ${exit}`].filter((part) => part !== '').join(' · ');
}

test('docs/reference/errors.md has a section for each code and for no other', (t) => {
  t.deepEqual([...sections.keys()].sort(), Object.keys(ERROR_CODES).sort());
});

for (const [code, audiences] of Object.entries(ERROR_CODES)) {
  test(`docs/reference/errors.md tells of ${code} what each audience sees, and explains it`, (t) => {
    const section = sections.get(code) ?? '';
    t.is(/^Seen as: (.*)$/m.exec(section)?.[1], seenAs(audiences));
    t.true(section.split('\n\n').length >= 3 && section.length > 100, section);
  });
}

const FAULTS: Readonly<Record<StateFault, true>> = {
  state_invalid: true,
  state_expired: true,
  state_mismatch: true,
  state_lost: true,
  state_given_up: true,
};

test('docs/reference/errors.md explains each reason why a call or a task cannot be continued, and no other', (t) => {
  const errors = [...Object.keys(FAULTS).map((fault) => stateError(fault as StateFault)), TASK_LOST, TASK_GIVEN_UP];
  const reasons = errors.map(({ data }) => (data as { bridge: { reason: string } }).bridge.reason);
  const told = [...text.matchAll(/^\| `((?:state|task)_\w+)` \|/gm)].map(([, reason]) => reason ?? '');
  t.deepEqual(told.sort(), reasons.sort());
});
