import test from 'ava';
import { refusal } from './refusal.ts';

/** As the shell splits what was copied from a text document. */
const COPIED: readonly (readonly [typed: string, shown: string])[] = [
  ['serve –port 80 -- npx foo', 'serve --port 80 -- npx foo'],
  ['serve —port 80 -- npx –y foo', "serve --port 80 -- npx '–y' foo"],
  ['serve — npx foo', 'serve -- npx foo'],
  ['–h', '-h'],
  ['serve --host “127.0.0.1” -- npx foo', 'serve --host 127.0.0.1 -- npx foo'],
  ['connect “https://a.example/mcp”', 'connect https://a.example/mcp'],
  ['serve -- “npx -y foo”', 'serve -- npx -y foo'],
  ['connect https://a.example --header “X-Name: abc”', "connect https://a.example --header 'X-Name: …'"],
];

for (const [typed, shown] of COPIED) {
  test(`${typed} is answered with ${shown}`, (t) => {
    const message = refusal(...typed.split(' '));
    t.regex(message, /^".*" begins with a (long dash|curly quote), which text editors put in place of /);
    t.is(message.split('\n').at(-1), `  mcp-portage ${shown}`);
  });
}

test('what is wrong beside a curly quote is told, too', (t) => {
  t.is(
    refusal('serve', '“npx', '-y', 'foo”'),
    '"“npx" begins with a curly quote, which text editors put in place of \' and ". The shell only knows the straight ones.\nUnexpected "npx -y foo": the server\'s command goes after `--`, as in\n  mcp-portage serve -- npx -y foo',
  );
});

test('long dashes and curly quotes within a word, and behind the program, are left alone', (t) => {
  t.is(refusal('--env', 'TEXT=“a” – b', '--', 'server', '“x”', '–y'), 'accepted');
});

test('the value of an option with a long dash is not repeated', (t) => {
  t.notRegex(refusal('–auth-token=secret', '--', 'server'), /secret/);
});
