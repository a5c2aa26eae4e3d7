/** What stands in a configuration file may be a secret in the wrong place: no error repeats it. */
import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { OPTIONS } from '../../../src/cli/options/option-table.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import { BridgeError } from '../../../src/errors.ts';
import { read } from '../config-file/read-text.ts';

const AROUND = {
  env: {},
  cwd: '/home/me',
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: () => {
    throw Object.assign(new Error('there is none'), { code: 'ENOENT' });
  },
} as const;

/** It is the same for all files, and takes longer than they do. */
const COMMAND = parseCommandLine(['serve', '--config', 'mcp.json']);

async function refusalOf(content: object): Promise<string | undefined> {
  if (COMMAND.kind !== 'bridge') throw new Error(`got ${COMMAND.kind}`);
  try {
    parseConfig(COMMAND, AROUND, await read(content));
    return undefined;
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
}

/** What a user may have put in the wrong place, and what an option takes that then does not go with another one. */
const SECRETS = [
  'canary-7f3a',
  'canary-7f3a, and more',
  'x=canary-7f3a',
  '7canary-7f3a',
  'Name: canary-7f3a',
  'canary-7f3a.example',
  'https://canary-7f3a.example/canary-7f3a',
  'https://canary-7f3a.example/?canary-7f3a',
  'wss://x:canary-7f3a@h.example/',
  'redis://x:canary-7f3a@h.example/',
  'tcp://canary-7f3a.example:7',
  '/canary-7f3a',
];

for (const { name } of OPTIONS) {
  test(`no error about ${name} in a configuration file repeats what stands there`, async (t) => {
    let refusals = 0;
    for (const secret of SECRETS) {
      for (const given of [secret, [secret], { value: secret }]) {
        const portage = { [name]: given };
        for (const [where, content] of [
          ['at the top', { mcpServers: { a: { command: 'x' } }, portage }],
          ['of a command', { mcpServers: { a: { command: 'x', portage } } }],
          ['of a URL', { mcpServers: { a: { url: 'https://a.example/', portage } } }],
        ] as const) {
          const refusal = await refusalOf(content);
          if (refusal !== undefined) refusals += 1;
          t.notRegex(refusal ?? '', /canary/i, where);
        }
      }
    }
    t.true(refusals > 0);
  });
}
