import test from 'ava';
import { LEGACY_STREAMABLE, testClusterMatrixOf } from './define-cluster-matrix.ts';

testClusterMatrixOf(test, 'httpSse', LEGACY_STREAMABLE);
