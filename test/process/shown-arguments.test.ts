import test from 'ava';
import { showArguments } from '../../src/process/shown-arguments.ts';

for (const [args, shown] of [
  [['npx', '-y', '@scope/server', '.'], 'npx -y @scope/server .'],
  [['my server', "it's"], `'my server' 'it'\\''s'`],
  [['--api-key', 'k', '--token=k', 'postgres://user:k@db/x'], '--api-key … --token=… postgres://…@db/x'],
  [['--env', 'NAME=k', '--header', 'X-Name: k'], "--env NAME=… --header 'X-Name: …'"],
  [['--env', 'NAME'], '--env NAME'],
  [['https://me:k@a.example/mcp?key=k'], "'https://…@a.example/mcp?…'"],
  // What says where a secret is, is none.
  [
    ['--auth-token', 'me=env:NAME', '--bearer-token-file', 'token.txt'],
    '--auth-token me=env:NAME --bearer-token-file token.txt',
  ],
] as const) {
  test(`${args.join(' ')} is shown as ${shown}`, (t) => {
    t.is(showArguments(args), shown);
  });
}
