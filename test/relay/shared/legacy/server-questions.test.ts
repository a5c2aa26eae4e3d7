import test from 'ava';
import { HandshakingClient } from '../../../../src/relay/shared/legacy/handshaking-client.ts';
import { ServerQuestions } from '../../../../src/relay/shared/legacy/legacy-state.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeServerListener } from '../../../support/fake-peers.ts';

const createClient = (): HandshakingClient => new HandshakingClient(new FakeServerListener(), new FakeClock());

test('only the client that was asked can answer, once', (t) => {
  const questions = new ServerQuestions();
  const [asked, other] = [createClient(), createClient()];
  const question = questions.open(asked, 'q');
  t.is(questions.takeAnswered(other, question.id), undefined);
  t.is(questions.takeAnswered(asked, String(question.id)), undefined);
  t.is(questions.takeAnswered(asked, undefined), undefined);
  t.is(questions.takeAnswered(asked, question.id), question);
  t.is(questions.takeAnswered(asked, question.id), undefined);
});

test('an id the server uses again names the later question, also after the earlier one was answered', (t) => {
  const questions = new ServerQuestions();
  const client = createClient();
  const earlier = questions.open(client, 1);
  const later = questions.open(client, 1);
  t.not(earlier.id, later.id);
  t.is(questions.takeAnswered(client, earlier.id), earlier);
  t.is(questions.takeWithdrawn(1), later);
  t.is(questions.takeWithdrawn(1), undefined);
});

test('the questions of one client are taken without those of another', (t) => {
  const questions = new ServerQuestions();
  const [a, b] = [createClient(), createClient()];
  const [first, second] = [questions.open(a, 'x'), questions.open(b, 'y')];
  t.deepEqual(questions.takeOf(a), [first]);
  t.is(questions.takeWithdrawn('x'), undefined);
  t.deepEqual(questions.takeAll(), [second]);
  t.deepEqual(questions.takeAll(), []);
  t.is(questions.takeWithdrawn('y'), undefined);
});

test('of elicitations at a URL a limited number is remembered, the latest', (t) => {
  const questions = new ServerQuestions();
  const client = createClient();
  for (let n = 0; n <= 1000; n += 1) questions.noteElicitation(`e${n}`, client);
  t.is(questions.clientOfElicitation('e0'), undefined);
  t.is(questions.clientOfElicitation('e1'), client);
  t.is(questions.clientOfElicitation('e1000'), client);
});

test('of those with long ids, which a server chooses, fewer are remembered', (t) => {
  const questions = new ServerQuestions();
  const client = createClient();
  const ids = Array.from({ length: 200 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  for (const id of ids) questions.noteElicitation(id, client);
  t.deepEqual(
    ids.filter((id) => questions.clientOfElicitation(id) !== undefined),
    ids.slice(-64),
  );
});

test('elicitations end with their client, and with their server', (t) => {
  const questions = new ServerQuestions();
  const [a, b] = [createClient(), createClient()];
  questions.noteElicitation('a', a);
  questions.noteElicitation('b', b);
  questions.takeOf(a);
  t.is(questions.clientOfElicitation('a'), undefined);
  t.is(questions.clientOfElicitation('b'), b);
  questions.takeAll();
  t.is(questions.clientOfElicitation('b'), undefined);
});

test('only strings name elicitations', (t) => {
  const questions = new ServerQuestions();
  for (const id of [undefined, null, 1, {}]) {
    questions.noteElicitation(id, createClient());
    t.is(questions.clientOfElicitation(id), undefined);
  }
});
