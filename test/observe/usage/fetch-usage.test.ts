import test from 'ava';
import { fetchUsage } from '../../../src/observe/usage/fetch-usage.ts';
import { startEndlessAnswers } from '../../support/endless-answers.ts';

const MAX_READ_BYTES = 64 * 1024 * 1024;

test('an answer without an end is read up to the size of the largest usage', async (t) => {
  const server = await startEndlessAnswers(t, 'application/json', '{"rows":"');
  const error = await t.throwsAsync(fetchUsage({ url: new URL(server.url), token: undefined, replicas: 'one' }));
  t.like(error, { code: 'ERR_UPSTREAM_PROTOCOL' });
  t.regex(error.message, /cannot be read: it is larger than 16777216 bytes\./);
  t.true(server.sentBytes < MAX_READ_BYTES);
});
