import test from 'ava';
import { quoteForShell, quoteWord, showArguments } from '../../src/process/shown-arguments.ts';

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
  [['--env', 'NAME=', '--header', 'X-Name:'], '--env NAME= --header X-Name:'],
  [['--auth', '--verbose', 'x'], '--auth --verbose x'],
  [['token', 'x'], 'token x'],
  [['--key=a', 'b'], '--key=… b'],
  [
    ['--client-secret', 'k', '--passwd', 'k', '--credentials', 'k', '--ACCESS-TOKEN', 'k'],
    ['--client-secret … --passwd … --credentials … --ACCESS-TOKEN …'].join(' '),
  ],
  [
    ['--key-file=a', '--token', 'file:t', '--token', 'a.b-c=file:t'],
    '--key-file=a --token file:t --token a.b-c=file:t',
  ],
  [['--token', 'x file:t'], '--token …'],
  [['API_KEY=first=second'], 'API_KEY=…'],
  [['TOKEN='], 'TOKEN=…'],
  [['--header', 'X.Name: k', '--header', ' X-Name:k'], "--header 'X.Name: …' --header X-Name:…"],
  [['--env', 'MY-NAME=k'], '--env MY-NAME=…'],
  [['http://a.example/?a=1', '--url=https://a.example?a=1'], "'http://a.example/?…' '--url=https://a.example?…'"],
  [['is it https://a.example/mcp?'], "'is it https://a.example/mcp?…'"],
  [['is it so? https://a.example'], "'is it so? https://a.example'"],
  [['HTTPS://a.example/?a=1&b=2'], "'HTTPS://a.example/?…'"],
  [['mongodb://a:k@x,//b:k@y'], 'mongodb://…@x,//…@y'],
  [['//host/a@b'], '//host/a@b'],
] as const) {
  test(`${args.join(' ')} is shown as ${shown}`, (t) => {
    t.is(showArguments(args), shown);
  });
}

test('cuts an argument that is long, and a word that is to be copied not', (t) => {
  t.is(quoteForShell('x'.repeat(200)), 'x'.repeat(200));
  t.is(quoteForShell('x'.repeat(201)), `${'x'.repeat(200)}…`);
  t.is(quoteWord('x'.repeat(201)), 'x'.repeat(201));
});

test('leaves a word without quotes only if a shell takes every character of it as it is', (t) => {
  t.is(quoteWord('aZ_9@%+=:,./-'), 'aZ_9@%+=:,./-');
  for (const word of ['', ' a', 'a ', 'a*', '$a', 'a;b', '~a', 'a"b']) t.is(quoteWord(word), `'${word}'`);
});
