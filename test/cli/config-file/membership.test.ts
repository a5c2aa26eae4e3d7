import test from 'ava';
import { mistakes, read } from './read-text.ts';

/** The part of the only server of a file in the aggregate. */
async function membershipOf(name: string, portage: object = {}) {
  const { servers } = await read({ mcpServers: { [name]: { command: 'x', portage } } });
  const membership = servers[0]?.membership;
  return membership && { prefix: membership.prefix, alwaysShow: membership.alwaysShow };
}

test('a server is part of the aggregate under its name, unless it is left out', async (t) => {
  t.deepEqual(await membershipOf('files'), { prefix: 'files', alwaysShow: [] });
  t.deepEqual(await membershipOf('files', { aggregate: true }), { prefix: 'files', alwaysShow: [] });
  t.is(await membershipOf('files', { aggregate: false }), undefined);
});

test('a prefix that is made from a name has only characters that the name of a tool may have', async (t) => {
  const prefixOf = async (name: string) => (await membershipOf(name))?.prefix;
  t.is(await prefixOf('Git Hub!'), 'Git-Hub');
  t.is(await prefixOf('io.github/files'), 'io-github-files');
  t.is(await prefixOf('under_score'), 'under_score');
  t.is(await prefixOf('~'), 'server');
  t.is(await prefixOf('n'.repeat(100)), 'n'.repeat(40));
});

test('a prefix may be named or left out, and favorites are names of tools', async (t) => {
  t.deepEqual(await membershipOf('files', { prefix: 'fs', alwaysShow: ['read_file'] }), {
    prefix: 'fs',
    alwaysShow: ['read_file'],
  });
  t.deepEqual(await membershipOf('files', { prefix: '', 'always-show': ['a', 'b'] }), {
    prefix: '',
    alwaysShow: ['a', 'b'],
  });
});

test('mistakes are told with their places', async (t) => {
  const refusals = async (portage: object) =>
    (await mistakes({ mcpServers: { a: { command: 'x', portage } } })).map((line) => line.replace(/^.*?portage\./, ''));
  t.deepEqual(await refusals({ aggregate: 'search' }), ['aggregate: expected true or false, got a string.']);
  t.deepEqual(await refusals({ prefix: 'two words' }), [
    'prefix: expected at most 40 letters, digits, "_" and "-", or "" for no prefix; got something else.',
  ]);
  t.deepEqual(await refusals({ prefix: 7 }), ['prefix: expected a string, got a number.']);
  t.deepEqual(await refusals({ alwaysShow: 'read_file' }), [
    'alwaysShow: expected an array of names of tools, got a string.',
  ]);
  t.deepEqual(await refusals({ alwaysShow: ['a', '', 3] }), [
    'alwaysShow[1]: expected the name of a tool, got an empty text.',
    'alwaysShow[2]: expected the name of a tool, got a number.',
  ]);
  t.deepEqual(await refusals({ prefx: 'a' }), ['prefx: mcp-portage has no option "prefx"; did you mean prefix?']);
});

test('prefixes and favorites are matters of one server', async (t) => {
  for (const portage of [{ prefix: 'a' }, { alwaysShow: ['a'] }]) {
    const [line = ''] = await mistakes({ mcpServers: {}, portage });
    t.regex(line, /portage\.(prefix|alwaysShow): is a matter of one server/);
  }
  const [line = ''] = await mistakes({ mcpServers: {}, portage: { aggregate: ['a'] } });
  t.regex(line, /portage\.aggregate: expected a string or a number, got an array/);
});
