import test from 'ava';
import { testClusterMatrixOf } from './define-cluster-matrix.ts';

testClusterMatrixOf(test, 'modernHttp');
