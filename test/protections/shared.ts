import type { Protection } from './protection.ts';

const CALLS = ['test/relay/shared/shared-calls.test.ts'] as const;
const QUESTIONS = ['test/relay/shared/shared-questions.test.ts'] as const;
const MODERN = ['test/relay/shared-modern/modern-calls.test.ts'] as const;
const FROM_SEATS = { file: 'src/relay/shared/from-seats.ts' } as const;
const FROM_SERVER = { file: 'src/relay/shared/from-server.ts' } as const;
const PENDING = { file: 'src/relay/shared/pending-calls.ts' } as const;
const FROM_MODERN_SEATS = { file: 'src/relay/shared-modern/from-modern-seats.ts', tests: MODERN } as const;
const FROM_MODERN_SERVER = { file: 'src/relay/shared-modern/from-modern-server.ts', tests: MODERN } as const;

/** Several clients at one server: each hears exactly what is its own. */
export const SHARED: readonly Protection[] = [
  {
    promise: 'ids of several clients are replaced',
    file: 'src/mcp/rewrite.ts',
    tests: CALLS,
    code: 'end: frame.idEnd, replacement }',
    without: 'end: frame.idEnd, replacement: frame.bytes.subarray(frame.idStart, frame.idEnd) }',
  },
  {
    promise: 'progress tokens of several clients are replaced',
    file: 'src/mcp/rewrite.ts',
    tests: CALLS,
    code: 'end: token.end, replacement }',
    without: 'end: token.end, replacement: frame.bytes.subarray(token.start, token.end) }',
  },
  {
    promise: 'each client gets its answer under its own id',
    ...FROM_SERVER,
    tests: CALLS,
    code: 'const answer = withId(frame, idToken);',
    without: 'const answer = frame;',
  },
  {
    promise: 'nothing is said of a call once it was answered',
    ...PENDING,
    tests: CALLS,
    title: 'LL-01: progress*',
    code: 'if (call !== undefined) this.#delete(call);',
  },
  {
    promise: 'a call with members that can be taken for others is refused',
    ...FROM_SEATS,
    tests: ['test/relay/shared/shared-look-alikes.test.ts'],
    code: 'if (hasLookAlike(frame)) return refused({ seat, frame, exchange }, UNCLEAR);',
  },
  {
    promise: 'a notification with members that can be taken for others is dropped',
    ...FROM_SEATS,
    tests: ['test/relay/shared/shared-look-alikes.test.ts'],
    code: 'return hasLookAlike(frame) || server.link.send(frame);',
    without: 'return server.link.send(frame);',
  },
  {
    promise: 'an answer with members that can be taken for others is an error to the server',
    ...FROM_SEATS,
    tests: QUESTIONS,
    code: 'hasLookAlike(frame) ? errorFrame(serverId, rpcErrorOf(UNCLEAR)) : withId(frame, serverId)',
    without: 'withId(frame, serverId)',
  },
  {
    promise: 'a call whose token can be read in two ways is refused',
    file: 'src/mcp/rewrite.ts',
    tests: ['test/relay/shared/shared-look-alikes.test.ts'],
    code: "if (token === 'unclear') return undefined;",
    without: "if (token === 'unclear') return { frame, progressToken: undefined };",
  },
  {
    promise: 'progress goes to the call whose token it names',
    ...FROM_SERVER,
    tests: CALLS,
    title: 'LL-01: progress*',
    code: 'this.#state.calls.get(token?.value)',
    without: 'this.#state.calls.get(1)',
  },
  {
    promise: 'a log message that may be about any of several clients goes to nobody',
    ...FROM_SERVER,
    tests: ['test/relay/shared/shared-log-levels.test.ts'],
    code: "if (owner.kind === 'nobody') {\n      // No call",
    without: 'if (owner !== undefined) {\n      // No call',
  },
  {
    promise: 'a client that set no level gets no log messages',
    file: 'src/relay/shared/log-levels.ts',
    tests: ['test/relay/shared/shared-log-levels.test.ts'],
    code: 'return wanted !== undefined && ',
    without: 'return wanted === undefined || ',
  },
  {
    promise: 'updates go to those who subscribed',
    ...FROM_SERVER,
    tests: ['test/relay/shared/shared-subscriptions.test.ts'],
    code: 'subscriptions.clientsFor(uri)',
    without: 'subscriptions.clients()',
  },
  {
    promise: 'who is not subscribed cannot end the subscription of another',
    ...FROM_SEATS,
    tests: ['test/relay/shared/shared-subscriptions.test.ts'],
    title: 'who is not subscribed*',
    code: 'return isOthers ? succeed(seat, frame, exchange) : ',
    without: 'return ',
  },
  {
    promise: 'a notification that names no client goes to nobody',
    ...FROM_SERVER,
    tests: ['test/relay/shared/shared-notifications.test.ts'],
    code: "else if (owner.kind === 'nobody' && only !== undefined) only.listener",
    without:
      'else for (const seat of this.#state.seats) seat.listener.fromServer(frame);\n    if (false) owner.listener',
  },
  {
    promise: 'a question of no call, or of one of several clients, is an error to the server',
    ...PENDING,
    tests: QUESTIONS,
    code: "if (latest !== undefined && latest.seat !== call.seat) return { kind: 'ambiguous' };",
  },
  {
    promise: 'a client that did not declare it is not asked',
    ...FROM_SERVER,
    tests: QUESTIONS,
    code: 'if (missing === undefined) return owner;',
    without: 'if (missing !== null) return owner;',
  },
  {
    promise: 'only the client that was asked can answer',
    file: 'src/relay/shared/server-questions.ts',
    tests: ['test/relay/shared/server-questions.test.ts'],
    code: ' || question.seat !== seat',
  },
  {
    promise: 'a question can be answered once',
    file: 'src/relay/shared/server-questions.ts',
    tests: ['test/relay/shared/server-questions.test.ts'],
    code: 'if (question === undefined || question.seat !== seat) return undefined;\n    this.#remove(question);',
    without: 'if (question === undefined || question.seat !== seat) return undefined;',
  },
  {
    promise: 'the end of an elicitation is told to the client that was sent there',
    ...FROM_SERVER,
    tests: ['test/relay/shared/shared-notifications.test.ts'],
    code: 'this.#state.questions.seatOfElicitation(elicitationId)?.listener',
    without: '[...this.#state.seats][0]?.listener',
  },
  {
    promise: 'questions to a client that has not finished its handshake are limited',
    ...FROM_SERVER,
    tests: QUESTIONS,
    code: 'if (!seat.early.hasRoomFor(asked.bytes.length)) return TOO_EARLY;',
  },
  {
    promise: 'tasks are not served where clients share: their ids have no owner',
    ...FROM_SEATS,
    tests: ['test/relay/shared/shared-handshake.test.ts'],
    code: 'method.startsWith(TASKS_PREFIX) && this.#owner === undefined',
    without: 'false',
  },
  {
    promise: 'a cancellation that belongs to no call of a client goes nowhere',
    ...FROM_SEATS,
    tests: CALLS,
    code: 'return exchange === undefined || this.#cancel(server, frame, exchange);',
    without: 'return exchange === undefined ? server.link.send(frame) : this.#cancel(server, frame, exchange);',
  },
  {
    promise: 'a client that leaves has its calls cancelled',
    ...FROM_SEATS,
    tests: CALLS,
    code: "upstream?.cancel('client');\n      server.link.send(notificationFrame(CANCELLED, params), upstream);",
    without: "upstream?.cancel('client');",
  },
  {
    promise: 'of two answers on one line each goes to its own client',
    ...FROM_SERVER,
    tests: CALLS,
    title: 'two answers*',
    code: 'const several = separateMessages(frame);',
    without: 'const several: readonly Frame[] | undefined = undefined;',
  },
  {
    promise: 'so it is with answers of a modern server',
    ...FROM_MODERN_SERVER,
    title: 'two answers*',
    code: 'const several = separateMessages(frame);',
    without: 'const several: readonly Frame[] | undefined = undefined;',
  },
  {
    promise: 'each client of a modern server gets its answer under its own id',
    ...FROM_MODERN_SERVER,
    code: 'const answer = withId(frame, call.idToken);',
    without: 'const answer = frame;',
  },
  {
    promise: 'of a modern server, what may be about several calls goes to nobody',
    file: 'src/relay/shared-modern/modern-calls.ts',
    tests: MODERN,
    code: 'if (sole !== undefined) return undefined;',
  },
  {
    promise: 'what a modern server still says of a withdrawn call reaches no other client',
    file: 'src/relay/shared-modern/modern-calls.ts',
    tests: MODERN,
    code: 'sole !== undefined && this.#isRivalled(sole, mayBeAbout) ? undefined : sole',
    without: 'sole',
  },
  {
    promise: 'at a modern server, too, members that can be taken for others are refused',
    ...FROM_MODERN_SEATS,
    code: "hasLookAlike(frame) ? 'unclear' : asksForLogs(frame)",
    without: 'asksForLogs(frame)',
  },
];
