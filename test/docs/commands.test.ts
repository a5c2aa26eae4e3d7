import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { parseReport, parseTop, parseView } from '../../src/cli/parse/looking.ts';
import { parseSnippet } from '../../src/cli/parse/servers/snippet.ts';
import { read } from '../cli/config-file/read-text.ts';
import { REPOSITORY, startBridge } from '../support/bridge.ts';
import { EVERYTHING } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { installedPrograms } from '../support/installed-programs.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { blocksOf, commandsOf, FOR_USERS, GUIDES, ROOT, splitWords } from './documents.ts';
import { TRIALS, type Trial } from './trials.ts';

const inGuides = new Set(
  GUIDES.flatMap(blocksOf)
    .filter(({ language }) => language === 'sh')
    .flatMap(commandsOf),
);

test('every command block of the README and the guides is declared, with how it is tried', (t) => {
  t.deepEqual(
    [...inGuides].filter((command) => !Object.hasOwn(TRIALS, command)),
    [],
  );
});

test('nothing is declared that stands in no guide', (t) => {
  t.deepEqual(
    Object.keys(TRIALS).filter((command) => !inGuides.has(command)),
    [],
  );
});

/** Blocks that are no commands: files and programs, which other tests look at, and what commands print. */
const OTHER_LANGUAGES = ['', 'text', 'js', 'json', 'jsonc', 'ini', 'nginx', 'yaml'];

test('a block of the guides is marked as commands, or in a language that a test looks at', (t) => {
  for (const { path, language } of GUIDES.flatMap(blocksOf)) {
    t.true(language === 'sh' || OTHER_LANGUAGES.includes(language), `${path}: ${language}`);
  }
});

// ---- accepted: everything that starts mcp-portage, in blocks and in running text, of the reference as well

const SECRET = 'x'.repeat(40);
const ENV = {
  GITHUB_TOKEN: SECRET,
  SERVICE_KEY: SECRET,
  TOKEN: SECRET,
  ALICE_TOKEN: SECRET,
  STATUS_TOKEN: SECRET,
  HUB_URL: 'wss://hub.example.com/mcp/',
  BROKER_URL: 'mqtts://portage:secret@broker.example.com/site/tools',
  MQTT_PASSWORD: 'secret',
  HOME: '/home/me',
};
const VERBS = ['serve', 'connect', 'probe', 'snippet', 'report', 'top', 'view', 'login', 'logout', 'pin', 'info'];
const around = {
  cwd: '/',
  env: ENV,
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: () => ({ text: SECRET, isOpenToAll: false }),
} as const;
const CLIENT_FILE = { mcpServers: { notes: { command: 'notes' }, github: { command: 'github' } } };

const written = new Set(
  FOR_USERS.flatMap(({ text }) => [...text.matchAll(/(?:^ *|`|npx -y )mcp-portage((?: [^`\n]+)+)/gm)])
    .map(([, rest = '']) => splitWords(rest.replace(/ [>|&].*$/, '')))
    // A shell puts the home folder in its place.
    .map((words) => words.map((word) => word.replace(/^~(?=\/)/, '/home/me')))
    .filter(([first = '']) => first.startsWith('-') || VERBS.includes(first))
    .filter((words) => words.length > 1 && !words.some((word) => /^[[<]|^…$|^FILE$|^HOST$|^URL$/.test(word)))
    .map((words) => JSON.stringify(words)),
);

test('the documents show commands', (t) => {
  t.true(written.size > 30, String(written.size));
});

for (const line of written) {
  const words: string[] = JSON.parse(line);
  test(`the command of the documents is accepted: mcp-portage ${words.join(' ')}`, async (t) => {
    const file = await read(CLIENT_FILE, { env: ENV });
    t.notThrows(() => {
      const commandLine = parseCommandLine(words);
      if (commandLine.kind === 'view') return void parseView(commandLine, around);
      if (commandLine.kind !== 'bridge') return;
      const given = commandLine.options.has('config') ? file : undefined;
      switch (commandLine.verb) {
        case 'snippet':
          return void parseSnippet(commandLine, around, given);
        case 'report':
          return void parseReport(commandLine, around);
        case 'top':
          return void parseTop(commandLine, around);
        default:
          return void parseConfig(commandLine, around, given);
      }
    });
  });
}

// ---- tried

/** Commands of the guides are written for a POSIX shell. */
const testInShell = process.platform === 'win32' ? test.skip : test;

for (const [command, trial] of Object.entries(TRIALS)) {
  if (trial.kind === 'serves') {
    test(`the command serves what it says: ${command}`, (t) => serve(t, command, trial));
  } else if (trial.kind === 'runs') {
    testInShell(`the command does what it says: ${command}`, (t) => run(t, command, trial));
  } else if (trial.kind === 'elsewhere') {
    test(`the command is tried elsewhere: ${command}`, (t) => {
      t.true(existsSync(fileURLToPath(new URL(trial.test, ROOT))), trial.test);
    });
  }
}

async function serve(t: ExecutionContext, command: string, trial: Trial & { kind: 'serves' }): Promise<void> {
  const args = splitWords(command.replace(/^(npx -y )?mcp-portage /, ''));
  const bridge = await startBridge(args, { env: { ...(await installedPrograms(t)), ...trial.env } });
  t.teardown(() => bridge.stop());
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const { tools } = await client.listTools();
  t.regex(tools.map(({ name }) => name).join(','), trial.tools);
}

async function run(t: ExecutionContext, command: string, trial: Trial & { kind: 'runs' }): Promise<void> {
  const { bridge: options, prints, exitCode = 0 } = trial;
  let line = command;
  if (options !== undefined) {
    const bridge = await startBridge([...options, '--', process.execPath, EVERYTHING]);
    t.teardown(() => bridge.stop());
    line = command.replaceAll('http://127.0.0.1:8000', bridge.url.origin);
  }
  const { path: folder } = await createConfigFolder(t);
  const env = { ...process.env, ...(await installedPrograms(t)), XDG_STATE_HOME: folder };
  const { stdout, code, stderr } = await new Promise<{ stdout: string; stderr: string; code: unknown }>((resolve) => {
    execFile('sh', ['-c', line], { cwd: REPOSITORY, env }, (error, out, err) =>
      resolve({ stdout: out, stderr: err, code: error?.code ?? 0 }),
    );
  });
  t.is(code, exitCode, stderr);
  t.regex(stdout, prints, stderr);
}
