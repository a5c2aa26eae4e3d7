import test from 'ava';
import type { ChildExit } from '../../../src/process/child.ts';
import { type ExitContext, exitError } from '../../../src/upstream/stdio/exit-error.ts';

const EXIT: ChildExit = {
  code: 1,
  signal: null,
  ranMs: 120.4,
  stderrTail: [],
  namedOnStderr: [],
  terminated: false,
};
const CONTEXT: ExitContext = {
  name: 'node server.js',
  hasServed: true,
  noise: [],
  withheldEnv: ['A', 'B'],
  retryAfterMs: 0,
};

const cases: readonly (readonly [
  title: string,
  exit: Partial<ChildExit>,
  context: Partial<ExitContext>,
  message: string,
])[] = [
  ['what happened to a server that had served', {}, {}, 'Server "node server.js" exited with code 1 after 120 ms.'],
  [
    'that it never answered',
    {},
    { hasServed: false },
    'Server "node server.js" exited with code 1 after 120 ms, before it answered anything.',
  ],
  [
    'its last words, and nothing of variables where the one it has named is not set here',
    { stderrTail: ['KEY is not set', 'bye'] },
    { hasServed: false, withheldEnv: ['A', 'B'] },
    'Server "node server.js" exited with code 1 after 120 ms, before it answered anything. Its last words on stderr: ' +
      'KEY is not set | bye',
  ],
  [
    'which of the withheld variables it has named itself',
    { stderrTail: ['KEY is not set'], namedOnStderr: ['KEY'] },
    { hasServed: false, withheldEnv: ['A', 'KEY'] },
    'Server "node server.js" exited with code 1 after 120 ms, before it answered anything. Its last words on stderr: ' +
      'KEY is not set (KEY is set here, but was withheld from the server; pass it on with --env KEY.)',
  ],
  [
    'several that it has named, also when it had served',
    { namedOnStderr: ['A', 'B'] },
    {},
    'Server "node server.js" exited with code 1 after 120 ms. ' +
      '(A and B are set here, but were withheld from the server; pass them on with --env A --env B.)',
  ],
  [
    'what it has named on stdout, where errors do not belong',
    {},
    { hasServed: false, noise: ['KEY is not set'], withheldEnv: ['A', 'KEY', 'not'] },
    'Server "node server.js" exited with code 1 after 120 ms, before it answered anything. On stdout, where MCP ' +
      'belongs, it printed: KEY is not set (KEY is set here, but was withheld from the server; pass it on with --env KEY.)',
  ],
  [
    'nothing of what it has named when it was told to end',
    { namedOnStderr: ['A'], terminated: true },
    {},
    'Server "node server.js" exited with code 1 when told to after 120 ms.',
  ],
  [
    'what it printed instead of messages, such as how it is used',
    { stderrTail: ['bad option'] },
    { hasServed: false, noise: ['Usage: server [options]', '--port <port>'], withheldEnv: [] },
    'Server "node server.js" exited with code 1 after 120 ms, before it answered anything. On stdout, where MCP ' +
      'belongs, it printed: Usage: server [options] | --port <port> Its last words on stderr: bad option',
  ],
  [
    'nothing of what it printed once it has answered',
    {},
    { noise: ['Welcome!'] },
    'Server "node server.js" exited with code 1 after 120 ms.',
  ],
  [
    'no hint when nothing was withheld',
    { code: 0 },
    { hasServed: false, withheldEnv: [] },
    'Server "node server.js" exited with code 0 after 120 ms, before it answered anything.',
  ],
  [
    'the signal, and no hint, when it was told to end',
    { code: null, signal: 'SIGTERM', terminated: true },
    { hasServed: false },
    'Server "node server.js" was ended by SIGTERM when told to after 120 ms, before it answered anything.',
  ],
];

/** The last words of a server, and the one of them that is the reason. */
const MISSING: readonly (readonly [program: string, lines: readonly string[], line: string])[] = [
  [
    'node, for a script',
    [
      'node:internal/modules/cjs/loader:1210',
      'throw err;',
      '^',
      "Error: Cannot find module '/srv/nope.js'",
      "code: 'MODULE_NOT_FOUND',",
      'requireStack: []',
      '}',
      'Node.js v20.20.2',
    ],
    "Error: Cannot find module '/srv/nope.js'",
  ],
  [
    'node, for a package',
    [
      'throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);',
      "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs",
      "code: 'ERR_MODULE_NOT_FOUND'",
      'Node.js v20.20.2',
    ],
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs",
  ],
  [
    'python',
    [
      'Traceback (most recent call last):',
      'File "/srv/a.py", line 1, in <module>',
      "ModuleNotFoundError: No module named 'mcp'",
    ],
    "ModuleNotFoundError: No module named 'mcp'",
  ],
  [
    'python -m',
    ['/usr/bin/python3: No module named mcp_server_time'],
    '/usr/bin/python3: No module named mcp_server_time',
  ],
];
for (const [program, stderrTail, line] of MISSING) {
  test(`tells that a module is missing by that line alone, without a hint about variables: ${program}`, (t) => {
    const exit = { ...EXIT, stderrTail, namedOnStderr: ['ERR_MODULE_NOT_FOUND'] };
    const context = { ...CONTEXT, hasServed: false, withheldEnv: ['ERR_MODULE_NOT_FOUND'] };
    const { message, data } = exitError(exit, context);
    t.is(
      message,
      `Server "node server.js" exited with code 1 after 120 ms, before it answered anything. A module is missing: ${line}`,
    );
    t.deepEqual(data, { exitCode: 1, signal: null });
    t.is(exitError({ ...EXIT, stderrTail: [] }, { ...context, noise: stderrTail }).message, message);
  });
}

for (const [title, exit, context, message] of cases) {
  test(`tells ${title}`, (t) => {
    t.is(exitError({ ...EXIT, ...exit }, { ...CONTEXT, ...context }).message, message);
  });
}

test('says when a new server may be started, if not at once', (t) => {
  t.is(exitError(EXIT, CONTEXT).retryAfterMs, undefined);
  t.is(exitError(EXIT, { ...CONTEXT, retryAfterMs: 250 }).retryAfterMs, 250);
});

test('names no variable that the server has not named', (t) => {
  const { message } = exitError(EXIT, { ...CONTEXT, hasServed: false, withheldEnv: ['SECRET_NAME'] });
  t.notRegex(message, /SECRET_NAME/);
});
