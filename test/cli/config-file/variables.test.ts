// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files.
import test from 'ava';
import { mistakes, read, readEntry } from './read-text.ts';

const env = { NAME: 'value', EMPTY: '', NESTED: '${NAME}', GITHUB_TOKEN: 'upper', 'exact-id': 'exact', 'a.b': 'c' };

for (const [written, expanded] of [
  ['${NAME}', 'value'],
  ['a${NAME}b${NAME}c', 'avaluebvaluec'],
  ['${NAME:-default}', 'value'],
  ['${MISSING:-default}', 'default'],
  ['${EMPTY:-default}', 'default'],
  ['${MISSING:-}', ''],
  ['${MISSING:-a:-b}', 'a:-b'],
  ['${env:NAME}', 'value'],
  ['${env:MISSING:-x}', 'x'],
  ['${NESTED}', '${NAME}'],
  ['${input:github-token}', 'upper'],
  ['${input:exact-id}', 'exact'],
  ['${workspaceFolder}/x', '/home/me/project/x'],
  ['${workspaceFolderBasename}', 'project'],
  ['${userHome}', '/home/me'],
  ['a${pathSeparator}b${/}c', 'a/b/c'],
  // No variables.
  ['$NAME', '$NAME'],
  ['${NAME', '${NAME'],
  ['{env:NAME}', '{env:NAME}'],
  ['%NAME%', '%NAME%'],
  ['${{ secrets.NAME }}', 'value'],
  // Of kinds that only a shell or a host knows, which arguments may have.
  ['${command:pick}', '${command:pick}'],
  ['${workspaceFolder:other}', '${workspaceFolder:other}'],
  ['${}', '${}'],
  ['${NAME:+x}', '${NAME:+x}'],
  ['R=${R%/}; exec ${NAME} ${#A[@]}', 'R=${R%/}; exec value ${#A[@]}'],
  ['${A:-${B}}', '${A:-${B}}'],
  ['a $1 $& $$', 'a $1 $& $$'],
] as const) {
  test(`${written} becomes ${expanded === '' ? 'nothing' : expanded}`, async (t) => {
    const { target } = await readEntry({ command: 'x', args: [written] }, { env });
    t.deepEqual(target, ['x', expanded]);
  });
}

for (const [written, problem] of [
  ['${MISSING}', 'the variable MISSING is not set here; set it, or write ${MISSING:-…} with a value to fall back on.'],
  ['${EMPTY}', 'the variable EMPTY is not set here; set it, or write ${EMPTY:-…} with a value to fall back on.'],
  ['${env:MISSING}', /^the variable MISSING is not set/],
  ['${__proto__}', /^the variable __proto__ is not set/],
  ['${constructor}', /^the variable constructor is not set/],
  [
    '${input:my key.2}',
    'VS Code would ask for this value; here it comes from the variable MY_KEY_2, which is not set. Set it.',
  ],
] as const) {
  test(`${written} is refused, with its place and the way out`, async (t) => {
    const [line = '', ...more] = await mistakes(`{"mcpServers":\n {"a": {"command": "x", "args": ["${written}"]}}}`, {
      env,
    });
    t.deepEqual(more, []);
    const prefix = 'mcp.json:2:34: mcpServers.a.args[0]: ';
    t.is(line.slice(0, prefix.length), prefix);
    const rest = line.slice(prefix.length);
    if (typeof problem === 'string') t.is(rest, problem);
    else t.regex(rest, problem);
  });
}

for (const [written, problem] of [
  ['${command:pick}', /^a variable of a kind that is not known here; expected \$\{NAME\}, /],
  ['${workspaceFolder:other}', /not known here/],
  ['${}', /not known here/],
  ['${NAME:+x}', /not known here/],
  ['${A:-${B}}', /^one variable stands within another; set a variable to the whole value\.$/],
  ['${{ secrets.MISSING }}', /^the variable MISSING is not set/],
] as const) {
  test(`${written} is refused outside of arguments, where no program would replace it`, async (t) => {
    const [line = '', ...more] = await mistakes({ mcpServers: { a: { command: 'x', env: { A: written } } } }, { env });
    t.deepEqual(more, []);
    t.regex(line.replace('mcp.json:1:46: mcpServers.a.env.A: ', ''), problem);
  });
}

test('what stays in an argument is told, but not where the program gets the variable from its own entry', async (t) => {
  const read1 = (entry: object) => read({ mcpServers: { a: { command: 'x', ...entry } } }, { env });
  const unknown = await read1({ args: ['-c', 'echo ${NAME} ${R%/}'] });
  t.deepEqual(unknown.warnings, [
    'mcp.json: mcpServers.a.args[1]: has a ${…} of a kind that is not known here; it stays as it is, for the program to read.',
  ]);
  const args = ['--header', 'Authorization: Bearer ${ACME_TOKEN}'];
  for (const key of ['env', 'environment', 'envs']) {
    const own = await read1({ args, [key]: { ACME_TOKEN: 'tok-1' } });
    t.deepEqual(own.warnings, []);
    t.deepEqual(own.leftOut, []);
    t.deepEqual(own.servers[0]?.target, { kind: 'command', command: 'x', args });
  }
  t.is((await read1({ args, env: { OTHER: 'tok-1' } })).leftOut.length, 1);
});

test('variables stand in every text of an entry', async (t) => {
  t.deepEqual(
    await readEntry(
      {
        command: '${NAME}',
        env: { A: '${NAME}' },
        cwd: '/${NAME}',
        includeTools: ['${NAME}*'],
        portage: { isolation: '${MISSING:-shared}', mapHeaders: ['X=${NAME}'] },
      },
      { env },
    ),
    {
      target: ['value'],
      options: {
        env: ['A=value'],
        cwd: ['/value'],
        includeTool: ['value*'],
        isolation: ['shared'],
        mapHeader: [{ header: 'x', variable: 'value' }],
      },
    },
  );
});

test('keys are taken as they are', async (t) => {
  t.deepEqual((await readEntry({ command: 'x', env: { '${NAME}': 'y' } }, { env })).options.env, ['${NAME}=y']);
});

test('what only a host looks at may have variables that only it knows', async (t) => {
  t.deepEqual((await readEntry({ command: 'x', dev: { watch: '${relativeFile}' } })).target, ['x']);
});

test('an entry that is switched off needs no variables', async (t) => {
  const file = { mcpServers: { a: { command: '${MISSING}', disabled: true }, b: { url: 3, enabled: false } } };
  t.deepEqual((await read(file)).disabled, ['a', 'b']);
});

test('the separator of Windows is a backslash', async (t) => {
  const { target } = await readEntry({ command: 'x', args: ['a${/}b'] }, { around: { platform: 'win32' } });
  t.deepEqual(target, ['x', 'a\\b']);
});

test('a few short lines cannot become a text without end', async (t) => {
  const large = { LARGE: 'x'.repeat(2 ** 17) };
  const file = (count: number) => ({ mcpServers: { a: { command: 'x', args: ['${LARGE}'.repeat(count)] } } });
  t.deepEqual(await mistakes(file(7), { env: large }), []);
  t.regex((await mistakes(file(9), { env: large }))[0] ?? '', /longer than 1 MiB with the values of its variables\.$/);
  const many = { mcpServers: { a: { command: 'x', args: Array.from({ length: 400 }, () => '${LARGE}') } } };
  t.regex((await mistakes(many, { env: large }))[0] ?? '', /too much text, with the values of variables\.$/);
});

const opencode = (text: string) => ({ mcp: { a: { type: 'local', command: ['x', text] } } });

test('a file that {file:…} names is found beside the file, or at home', async (t) => {
  const files = { '/home/me/project/a': 'one\n', '/home/me/b': '{file:a}' };
  const { servers, included } = await read(opencode('{file:a}-{file:~/b}-{env:NAME}'), { env, files });
  t.deepEqual(servers[0]?.target, { kind: 'command', command: 'x', args: ['one-{file:a}-value'] });
  t.deepEqual(included, ['/home/me/project/a', '/home/me/b']);
});

test('a file that {file:…} names has to be there, and to be ours', async (t) => {
  t.deepEqual(await mistakes(opencode('{file:a}')), [
    'mcp.json:1:44: mcp.a.command[1]: the file that is named here does not exist.',
  ]);
  const files = { '/home/me/project/a': { mode: 0o666 } };
  t.regex(
    (await mistakes(opencode('{file:a}'), { files }))[0] ?? '',
    /others may write to the file that is named here,/,
  );
});
