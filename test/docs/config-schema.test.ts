import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { renderConfigSchema } from '../../scripts/config-schema.ts';

const text = await readFile(new URL('../../docs/reference/config.schema.json', import.meta.url), 'utf8');

test('docs/reference/config.schema.json is up to date (npm run docs)', (t) => {
  t.is(text, renderConfigSchema());
});

const isValid = new Ajv2020({ allowUnionTypes: true }).compile(JSON.parse(text));

test('docs/reference/config.schema.json takes files of hosts, with what is ours', (t) => {
  t.true(
    isValid({
      mcpServers: {
        a: {
          command: 'npx',
          args: ['x'],
          env: { A: 1, B: null },
          trust: true,
          portage: {
            isolation: 'shared',
            callers: ['x'],
            tools: { a: { name: 'b', title: 'B', description: '', hidden: false, callers: ['x'] } },
            renameTool: { c: 'd' },
          },
        },
        c: { url: 'https://c.example', portage: { login: { resource: 'none', params: { a: 'b' }, token: 'id' } } },
        b: { url: 'https://b.example', headers: { A: 'b' }, timeout: 1000, portage: { login: 'on-demand' } },
      },
      portage: { port: 8000, sse: false, authToken: ['a=env:A'], maxSessions: '16' },
      other: {},
    }),
  );
  t.true(isValid({ mcp: { servers: { a: { type: 'local', command: ['x'] } } } }));
});

test('docs/reference/config.schema.json finds what is not right', (t) => {
  for (const wrong of [
    { mcpServers: { a: { command: 1 } } },
    { servers: { a: { args: 'x' } } },
    { mcpServers: { a: { portage: { isolation: 'none' } } } },
    { portage: { sse: 'no' } },
    { mcpServers: { a: { portage: { tools: { a: { name: 'b c' } } } } } },
    { mcpServers: { a: { portage: { tools: { a: { rename: 'b' } } } } } },
    { mcpServers: { a: { portage: { login: 'always' } } } },
    { mcpServers: { a: { portage: { login: { token: 'both' } } } } },
  ]) {
    t.false(isValid(wrong), JSON.stringify(wrong));
  }
});
