/** Prints the entries of a recording for programs, one JSON object a line. docs/guide/observe.md explains the members. */
import { escapeHidden } from '../../printable.ts';
import type { CallOutcome, Entry, Exchange } from './pair-calls.ts';

/** Returns the line of an entry, with its line break. Its messages are in it if they were kept. */
export function renderEntryJson(entry: Entry): string {
  const members = JSON.stringify(membersOf(entry));
  const { lines, leftOut } = entry;
  const missing = leftOut === 0 ? '' : `,"messagesLeftOut":${leftOut}`;
  // The lines stand as they were recorded: parsing could change numbers.
  const messages = lines.length === 0 ? '' : `,"messages":[${lines.join(',')}]${missing}`;
  return `${escapeHidden(`${members.slice(0, -1)}${messages}}`)}\n`;
}

function membersOf(entry: Entry): object {
  const { kind, server, client, call } = entry;
  if (kind === 'call') {
    const { request, outcome, durationMs, notifications, questions } = entry;
    const { side, direction, era, carrier } = request;
    return {
      kind,
      ...exchangeMembers(request, outcome, durationMs),
      server,
      client,
      call,
      side,
      direction,
      era,
      carrier,
      notifications,
      questions: questions.map((asked) => {
        const { answer } = asked;
        const durationOf = answer && Math.max(0, answer.atMs - asked.atMs);
        return { side: asked.side, ...exchangeMembers(asked, answer?.outcome ?? { kind: 'unanswered' }, durationOf) };
      }),
    };
  }
  const { atMs, side, direction, bytes } = entry;
  const own = kind === 'answer' ? outcomeMembers(entry.outcome) : { method: entry.method };
  return { kind, at: new Date(atMs).toISOString(), ...own, bytes, server, client, call, side, direction };
}

function exchangeMembers(
  { atMs, method, subject, bytes, answer }: Exchange,
  outcome: CallOutcome,
  durationMs: number | undefined,
): object {
  return {
    at: new Date(atMs).toISOString(),
    durationMs,
    method,
    subject,
    ...outcomeMembers(outcome),
    requestBytes: bytes,
    answerBytes: answer?.bytes,
  };
}

function outcomeMembers(outcome: CallOutcome): object {
  return outcome.kind === 'error' ? { outcome: outcome.kind, code: outcome.code } : { outcome: outcome.kind };
}
