import test from 'ava';
import { MemoryStore } from '../../support/memory-store.ts';
import { testStoreContract } from './store-contract.ts';

testStoreContract(test, 'in memory', async () => new MemoryStore());
