import test from 'ava';
import { LEGACY_STREAMABLE, REPLICATED, testClusterMatrixOf } from './define-cluster-matrix.ts';

testClusterMatrixOf(
  test,
  'httpSse',
  REPLICATED.filter((server) => !LEGACY_STREAMABLE.includes(server)),
);
