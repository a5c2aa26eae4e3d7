import test from 'ava';
import { testMatrixOf } from './define-matrix.ts';

testMatrixOf(test, 'modernMqtt');
