import test from 'ava';
import {
  findRevision,
  isEarlierRevision,
  LATEST_LEGACY_REVISION,
  OLDEST_REVISION,
  REVISION_IDS,
} from '../../../src/mcp/vocabulary/revisions.ts';

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

test('knows the four legacy revisions, oldest first', (t) => {
  t.deepEqual(REVISION_IDS, LEGACY);
  t.deepEqual(
    LEGACY.map((id) => findRevision(id)?.id),
    LEGACY,
  );
  t.is(OLDEST_REVISION.id, '2024-11-05');
  t.is(LATEST_LEGACY_REVISION.id, '2025-11-25');
});

test('finds nothing under other names, whatever their type', (t) => {
  for (const id of [
    '',
    '2025-01-01',
    '2025-11-25 ',
    'constructor',
    '__proto__',
    20251125,
    null,
    undefined,
    ['2025-11-25'],
  ]) {
    t.is(findRevision(id), undefined);
  }
});

for (const [flag, having] of [
  ['batching', ['2025-03-26']],
  ['primingEvent', ['2025-11-25']],
  ['versionHeader', ['2025-06-18', '2025-11-25']],
] as const) {
  test(`${flag} is part of ${having.join(' and ')} only`, (t) => {
    t.deepEqual(
      LEGACY.filter((id) => findRevision(id)?.[flag]),
      [...having],
    );
  });
}

test('legacy revisions have an order, and none is earlier than itself', (t) => {
  const ids = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
  for (const [index, id] of ids.entries()) {
    for (const [otherIndex, other] of ids.entries()) t.is(isEarlierRevision(id, other), index < otherIndex);
  }
});
